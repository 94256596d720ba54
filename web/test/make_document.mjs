// Deterministic synthetic report documents from a planted law.
//
//   best depth L*(N):  N = 12 L d(L)^2,  ln d(L) = a + b L
//   loss(L, N) = E + A N^-alpha (1 + c (L - L*)^2 / (L* + 9)^2) + seed noise
//
// The penalty is symmetric in L, so two depths cross where L* is their midpoint: the transitions of
// the document lie exactly on the law (reading "midpoint").
//
//   node make_document.mjs [RUNS|large|small|...] > document.json
import { pathToFileURL } from 'node:url';

const kLaw = { a: 3.9, b: 0.085 };
const kScale = { floor: 1.69, amplitude: 38, exponent: 0.22, penalty: 0.14 };

/// A small counter-based generator (mulberry32): same seed, same document.
function make_random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const law_width = (depth) => Math.exp(kLaw.a + kLaw.b * depth);
const law_size = (depth) => 12 * depth * law_width(depth) ** 2;

function best_depth(params) {
  let low = 1e-6;
  let high = 400;
  for (let i = 0; i < 80; ++i) {
    const middle = (low + high) / 2;
    if (law_size(middle) < params) low = middle;
    else high = middle;
  }
  return low;
}

export function planted_loss(layers, params) {
  const best = best_depth(params);
  const penalty = kScale.penalty * ((layers - best) / (best + 9)) ** 2;
  return kScale.floor + kScale.amplitude * params ** -kScale.exponent * (1 + penalty);
}

function make_run(layers, size, seed, random, { tokens, noise: scatter }) {
  const width = Math.max(8, Math.round(Math.sqrt(size / (12 * layers)) / 8) * 8);
  const params = 12 * layers * width * width;
  const noise = scatter * (random() + random() + random() - 1.5);
  const loss = planted_loss(layers, params) + noise;
  const speed = 4e13 / (6 * params + 9e5 * layers) / (1 + layers / 160);
  const id =
    Math.floor(random() * 2 ** 48)
      .toString(16)
      .padStart(12, '0') + layers.toString(16);
  return {
    id,
    layers,
    width,
    heads: Math.max(1, Math.round(width / 32)),
    params,
    tokens,
    seed,
    loss,
    bits_per_byte: loss / Math.LN2 / 2.57,
    status: 'finished',
    reason: null,
    seconds: tokens / speed,
    tokens_per_second: speed,
    flops: 6 * params * tokens,
  };
}

function make_curve(run, points) {
  const curve = [];
  for (let i = 1; i <= points; ++i) {
    const tokens = Math.round(run.tokens * (i / points) ** 1.6);
    curve.push([
      tokens,
      +(run.loss + 4.2 * Math.exp(-9 * (tokens / run.tokens) ** 0.42)).toFixed(4),
    ]);
  }
  return { id: run.id, points: curve };
}

function make_transition(shallow, deep, sizes) {
  const middle = (shallow + deep) / 2;
  const params = law_size(middle);
  const [least, most] = [sizes[0], sizes[sizes.length - 1]];
  const base = { shallow, deep, params: null, low: null, high: null, width: null };
  if (params < least) return { ...base, high: least, status: 'below grid' };
  if (params > most) return { ...base, low: most, status: 'above grid' };
  return {
    shallow,
    deep,
    params,
    low: params * 0.82,
    high: params * 1.24,
    status: 'crossing',
    width: law_width(middle),
  };
}

export function make_document(options = {}) {
  const depths = options.depths ?? [2, 3, 6, 12, 24];
  const count = options.sizes ?? 9;
  const seeds = options.seeds ?? 3;
  const random = make_random(options.random_seed ?? 7);
  const tokens = options.tokens ?? 1e8;
  const noise = options.noise ?? 0.008;
  const sizes = Array.from(
    { length: count },
    (_, i) => 2e5 * 100 ** (count > 1 ? i / (count - 1) : 0),
  );
  const runs = [];
  for (const layers of depths) {
    for (const size of sizes) {
      for (let seed = 0; seed < seeds; ++seed)
        runs.push(make_run(layers, size, seed, random, { tokens, noise }));
    }
  }
  const transitions = depths.slice(1).map((deep, i) => make_transition(depths[i], deep, sizes));
  return {
    schema: 'fathom.report.v1',
    title: options.title ?? 'Depth and width on the State of the Union',
    created: '2026-11-15T11:00:00Z',
    question:
      'How deep and how wide should a transformer be on this text, from 0.2M to 20M parameters?',
    answer: [
      'Depth starts to pay at width 72 for 6 layers and at width 228 for 24.',
      'The fitted law is ln d = 3.90 ± 0.05 + (0.085 ± 0.004)·L, from 3 transitions.',
      'Its slope is steeper than the published 0.0555; 2 → 3 layers cross below the grid.',
    ],
    spec: {
      toml: '[corpus]\npath = "sotu"\n\n[grid]\ndepths = [2, 3, 6, 12, 24]\nseeds = 3\n',
      corpus: { name: 'sotu', bytes: 10342112, xxh128: '8b1f0c2e9d4a7f6655aa0123456789ab' },
      tokenizer: { kind: 'bpe', vocabulary: 2000, hash: '0011223344556677889900aabbccddee' },
    },
    versions: { fathom: '0.1.0', compiler: 'GNU 12.2.0', device: 'synthetic' },
    runs,
    curves: runs.map((run) => make_curve(run, options.curve_points ?? 60)),
    fit: {
      transitions,
      law: {
        a: kLaw.a,
        b: kLaw.b,
        a_error: 0.05,
        b_error: 0.004,
        correlation: -0.9,
        points: transitions
          .filter((t) => t.status === 'crossing')
          .map((t) => ({ layers: (t.shallow + t.deep) / 2, width: t.width, log_error: 0.05 })),
        reading: 'midpoint',
        ...options.law,
      },
      joint: {
        form: 'P',
        coefficients: {
          P: { log_coefficient: Math.log(kScale.amplitude), exponent: kScale.exponent },
          constant: { log: Math.log(kScale.floor) },
        },
        holdout_error: 0.0031,
      },
      warnings: ['tokens do not vary apart from size'],
      verdict: 'Three transitions stand on one exponential; 2 → 3 is bounded from above only.',
    },
    published: {
      a: 5.039,
      b: 0.0555,
      a_error: 0.03,
      b_error: 0.0013,
      correlation: null,
      name: 'Levine 2020',
      source: 'arXiv 2006.12467',
    },
  };
}

/// The documents the tests open, by name.
export const kDocuments = {
  usual: () => make_document(),
  /// 20 depths x 100 sizes x 5 seeds = 10,000 runs.
  large: () =>
    make_document({
      title: 'Ten thousand runs',
      depths: [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 36, 42, 48],
      sizes: 100,
      seeds: 5,
      curve_points: 12,
    }),
  /// Quiet enough for a fit to find the planted law again.
  quiet: () => make_document({ seeds: 1, noise: 0.001 }),
  /// A law from two crossings: its errors are large and nearly cancel where the crossings are.
  correlated: () =>
    make_document({ law: { a: 4.865, b: 0.0587, a_error: 0.272, b_error: 0.0732, correlation: -0.98 } }),
  independent: () =>
    make_document({ law: { a_error: 0.272, b_error: 0.0732, correlation: null } }),
  /// Every fourth run stopped early, which is a valid result.
  early_stopped: () => {
    const document = make_document();
    document.runs.forEach((run, i) => {
      if (i % 4 === 0) run.status = 'early_stopped';
    });
    return document;
  },
  no_fit: () => ({ ...make_document(), fit: null, answer: null }),
  one_run: () => {
    const document = make_document({ depths: [4], sizes: 1, seeds: 1 });
    return {
      ...document,
      fit: null,
      title: 'One run',
      answer: ['One run cannot show a transition.'],
    };
  },
  diverged: () => {
    const document = make_document();
    document.runs.forEach((run, i) => {
      if (i % 4 !== 0) return;
      Object.assign(run, {
        status: 'diverged',
        loss: null,
        bits_per_byte: null,
        reason: 'loss is not finite at step 120',
      });
    });
    return document;
  },
  /// Every shape also at half its tokens, with a higher loss.
  two_budgets: () => {
    const document = make_document();
    const half = document.runs.map((run) => ({
      ...run,
      id: `${run.id}-half`,
      tokens: run.tokens / 2,
      loss: run.loss + 0.1,
    }));
    return { ...document, runs: [...half, ...document.runs] };
  },
  bare: () => ({ schema: 'fathom.report.v1' }),
  hostile: () => {
    const document = make_document({ depths: [2, 6], sizes: 3, seeds: 1 });
    const evil =
      '</script><script>window.hacked = 1</script>' +
      '<img src=x onerror="window.hacked = 2">"\'&\u2028\u2029<!--';
    for (const key of ['title', 'question', 'created']) document[key] = evil;
    document.answer = [evil, evil, evil];
    document.spec.toml = evil;
    document.spec.corpus.name = evil;
    document.versions = { [evil]: evil };
    document.fit.verdict = evil;
    document.fit.warnings = [evil];
    document.fit.transitions[0].status = evil;
    document.runs.forEach((run, i) => {
      run.id = i === 0 ? 'x'.repeat(5000) : `${evil}${i}`;
      run.status = i === 1 ? evil : run.status;
      run.reason = evil;
    });
    document.curves.forEach((curve, i) => (curve.id = document.runs[i].id));
    document.runs.push(
      null,
      7,
      'text',
      [],
      { layers: 'many' },
      { layers: 3, loss: 'NaN', width: -4 },
    );
    return document;
  },
};

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const make = kDocuments[process.argv[2] ?? 'usual'];
  if (!make) {
    console.error(`usage: node make_document.mjs ${Object.keys(kDocuments).join('|')}`);
    process.exit(2);
  }
  process.stdout.write(JSON.stringify(make()));
}
