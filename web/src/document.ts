// The report's input, schema fathom.report/1, read with suspicion: any field may be null, missing
// or of another type, and the page must still say what it can. After `read_study` every number is
// finite or null and every list exists.

export interface Run {
  id: string;
  layers: number;
  width: number | null;
  heads: number | null;
  params: number | null;
  tokens: number | null;
  seed: string;
  loss: number | null;
  bits_per_byte: number | null;
  status: string;
  reason: string;
  seconds: number | null;
  tokens_per_second: number | null;
  flops: number | null;
}

export interface Curve {
  id: string;
  points: [number, number][];
}

export interface Transition {
  shallow: number;
  deep: number;
  params: number | null;
  low: number | null;
  high: number | null;
  width: number | null;
  status: string;
}

export interface Law {
  a: number;
  b: number;
  a_error: number | null;
  b_error: number | null;
  covariance: number | null;
  points: number | null;
  reading: string;
}

export interface Study {
  title: string;
  created: string;
  question: string;
  answer: string[];
  toml: string;
  facts: [string, [string, string][]][];
  versions: [string, string][];
  runs: Run[];
  curves: Curve[];
  transitions: Transition[];
  law: Law | null;
  joint: [string, string][];
  verdict: string;
  cautions: string[]; // what the fit says the runs cannot tell
  has_fit: boolean;
  published: Law | null;
}

type Loose = Record<string, unknown>;

const object = (value: unknown): Loose =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Loose) : {};
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const number = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) ? value : null;
const positive = (value: unknown): number | null => {
  const read = number(value);
  return read !== null && read > 0 ? read : null;
};
const text = (value: unknown): string =>
  typeof value === 'string' ? value : typeof value === 'number' ? String(value) : '';

/// A nested value as "name, text" lines: {"name":"sotu","bytes":3} -> name sotu, bytes 3.
function flatten(value: unknown, prefix = ''): [string, string][] {
  if (value === null || value === undefined) return [];
  if (Array.isArray(value)) {
    return [[prefix, value.map((entry) => text(entry) || JSON.stringify(entry)).join(', ')]];
  }
  if (typeof value === 'object') {
    return Object.entries(value as Loose).flatMap(([key, inner]) =>
      flatten(inner, prefix ? `${prefix}.${key}` : key),
    );
  }
  if (typeof value === 'number' && !Number.isInteger(value)) {
    return [[prefix, String(Number(value.toPrecision(8)))]];
  }
  return [[prefix, String(value)]];
}

function read_run(value: unknown): Run | null {
  const run = object(value);
  const layers = positive(run.layers);
  if (layers === null) return null;
  return {
    id: text(run.id),
    layers,
    width: positive(run.width),
    heads: positive(run.heads),
    params: positive(run.params),
    tokens: positive(run.tokens),
    seed: text(run.seed),
    loss: positive(run.loss),
    bits_per_byte: positive(run.bits_per_byte),
    status: text(run.status) || 'unknown',
    reason: text(run.reason),
    seconds: positive(run.seconds),
    tokens_per_second: positive(run.tokens_per_second),
    flops: positive(run.flops),
  };
}

function read_transition(value: unknown): Transition | null {
  const from = object(value);
  const shallow = positive(from.shallow);
  const deep = positive(from.deep);
  if (shallow === null || deep === null) return null;
  return {
    shallow,
    deep,
    params: positive(from.params),
    low: positive(from.low),
    high: positive(from.high),
    width: positive(from.width),
    status: text(from.status) || 'unclear',
  };
}

function read_curve(value: unknown): Curve {
  const curve = object(value);
  const points: [number, number][] = [];
  for (const point of list(curve.points)) {
    const tokens = Array.isArray(point) ? positive(point[0]) : null;
    const loss = Array.isArray(point) ? positive(point[1]) : null;
    if (tokens !== null && loss !== null) points.push([tokens, loss]);
  }
  return { id: text(curve.id), points };
}

function read_law(value: unknown): Law | null {
  const law = object(value);
  const a = number(law.a);
  const b = number(law.b);
  if (a === null || b === null) return null;
  return {
    a,
    b,
    a_error: number(law.a_error),
    b_error: number(law.b_error),
    covariance: number(law.covariance),
    points: number(law.points),
    reading: text(law.reading),
  };
}

function present<T>(values: (T | null)[]): T[] {
  return values.filter((value): value is T => value !== null);
}

export function read_study(document: unknown): Study {
  const root = object(document);
  const spec = object(root.spec);
  const fit = object(root.fit);
  const facts: Study['facts'] = [];
  for (const [name, value] of Object.entries(spec)) {
    if (name === 'toml') continue;
    const lines = flatten(value);
    if (lines.length > 0) facts.push([name, lines]);
  }
  return {
    title: text(root.title) || 'A study without a title',
    created: text(root.created),
    question: text(root.question),
    answer: list(root.answer).map(text).filter(Boolean),
    toml: text(spec.toml),
    facts,
    versions: flatten(root.versions),
    runs: present(list(root.runs).map(read_run)),
    curves: list(root.curves)
      .map(read_curve)
      .filter((curve) => curve.points.length > 0),
    transitions: present(list(fit.transitions).map(read_transition)),
    law: read_law(fit.law),
    joint: flatten(fit.joint),
    verdict: text(fit.verdict),
    cautions: list(fit.warnings).map(text).filter(Boolean),
    has_fit: root.fit !== null && root.fit !== undefined,
    published: read_law(root.published),
  };
}
