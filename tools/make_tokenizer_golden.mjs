#!/usr/bin/env node
// Writes tests/golden/tokenizers/*.json: small tokenizers of every kind and the ids that the reference
// library gives for 200 nasty strings. Runs once, with the npm package `tokenizers`; the tests only
// read the files.
//
//   (cd FOLDER && npm install --ignore-scripts tokenizers@0.23.2)
//   node tools/make_tokenizer_golden.mjs FOLDER tests/golden/tokenizers
import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';

const [packages, target] = process.argv.slice(2);
const require = createRequire(resolve(packages, 'x.js'));
const { Tokenizer } = require('tokenizers');

const kText = `The quick brown fox jumps over the lazy dog, and the dog does not mind. In 1984 they had
12,345 reasons; it's what they'd say. We're here, you're there: "hello", she said. Über straße naïve café
don't can't won't I'll 3.14 2024-01-01 foo_bar fooBar http://example.org/a?b=c&d=e the the the of of in
to and that is was for with as on be at by this had not are but from or have an they which one you were
日本語 中文 한국어 Привет мир γειά σου שלום مرحبا 🙂 👍🏽 ½ ² ① ﬁ Å`;

// ---- nasty strings

function nasty() {
  const list = ['', ' ', '  ', '\n', '\r\n', '\t', ' a', 'a ', '  a  b  ', 'a\nb', 'a\n\n\nb', '\n\n a', 'a  \n  b'];
  list.push("it's", "IT'S", "we'll've", "'s", "''s", "don’t", "'ſ", "I'd'd", "'", "''", "x'tx");
  list.push('0', '12', '123', '1234567', '3.14', '1,000,000', '٣٤', '१२३', '²', '½', 'Ⅷ', '①②', '1a2b3c', 'a1b22c333');
  list.push('café', 'cafe\u0301', 'Å', 'A\u030A', '\u212B', 'ﬁ', 'ﬃ', 'ǅ', 'İ', 'ı', 'ß', 'ẞ', 'Σίσυφος', 'ΑΣ', 'ѐ', '\u0301', 'a\u0301\u0302\u0303');
  list.push('日本語', '中文字符', '한국어', '\u1112\u1161\u11ab', '𠀀𠀁', '\u{2B820}', '\u{2B920}', '豈', 'ｆｕｌｌ　ｗｉｄｔｈ', '々〆', 'カタカナ', 'ｶﾀｶﾅ');
  list.push('Привет, мир!', 'γειά σου', 'שלום עולם', 'مرحبا بالعالم', 'नमस्ते', 'ไทย', 'ქართული', '\u202Ertl', 'a\u200Db', 'a\u200Bb', '\uFEFFbom', 'soft\u00ADhyphen');
  list.push('🙂', '👍🏽', '👨‍👩‍👧‍👦', '🇩🇪', '☕️', '⚠', '\u{1F9D1}\u200D\u{1F4BB}', 'a🙂b', '🙂🙂🙂');
  list.push('\u00A0', 'a\u00A0b', '\u2003em', '\u3000', '\u2028', '\u2029', '\u0085', 'x\u0000y', '\u0001', '\u007F', '\uFFFD', '\u{10FFFF}', '\uE000');
  list.push('hello world', 'Hello World', 'HELLO', 'the quick brown fox', ' the  quick   brown    fox', 'thethethe', 'dogdogdog', 'The dog.', 'foo_bar', 'fooBar', '__init__', 'a.b.c', 'a,b;c:d', '(a)[b]{c}', '<a>', '</s>', '<s>', '<s>a</s>', 'a<s>b', ' <s> ', '<mark>', 'a <mark> b', 'a<mark>b', '<mark><mark>', '<|end|>', '<pad', '[MASK]', 'a [MASK] b', '[CLS]', '<unk>', '▁', '▁▁a', 'a▁b', 'Ġ', '<0x0A>', '##a', '#', '@@');
  list.push('!', '!!!', '?!', '...', '…', '—', '“quoted”', '«a»', '$5', '€10', '50%', '±', '×', '°C', 'a+b=c', '~`^|', '\\n', '"', "'a'", '¿qué?', '、。', '$$$', '+++---');
  list.push('http://example.org/a?b=c&d=e#f', 'user@example.com', 'C:\\path\\file.txt', '2024-01-01T00:00:00Z', '{"a": [1, 2, 3]}', '<div class="x">y</div>', 'def f(x):\n    return x + 1\n', '\tif (a) {\n\t\tb();\n\t}', 'SELECT * FROM t;', 'x=1;y=2', '#include <a.h>');
  list.push('a'.repeat(70), 'ab'.repeat(60), ' '.repeat(40), '\n'.repeat(9), 'é'.repeat(30), 'x'.repeat(101), `${'word '.repeat(30)}`, '1'.repeat(50), '🙂'.repeat(10), `${'\t'.repeat(5)}a`);
  list.push('a\rb', 'a\r\nb', ' \n', '\n ', ' \n ', 'a \nb', 'a\n b', 'a  b', 'a   b', 'end ', 'end  ', 'end\n', ' . ', 'a . b', 'q ?', '( x )', "o'clock", 'naïve résumé', 'STRASSE straße', 'ÀÉÎÕÜ', 'àéîõü', 'x²+y²', 'H₂O', 'e=mc²', '10⁻³', '½ cup', 'No. 5', 'A.B.C.', 'U.S.A', "rock'n'roll", 'mother-in-law', 'co-operate', 'the\u0301re', 'ＡＢＣ', '①a', 'a①', 'ﬁne', 'æther', 'ŒUVRE', 'Ĳssel', 'ŉ', 'ͅ', 'a\u0345', '\u1E9B\u0323');
  return [...new Set(list)].slice(0, 240);
}

// ---- training, in the plainest way: the most frequent pair, ties by name

function words_of(tokenizer, text) {
  const counts = new Map();
  for (const line of text.split('\n')) {
    const normal = tokenizer.getNormalizer()?.normalizeString(line) ?? line;
    const pieces = tokenizer.getPreTokenizer()?.preTokenizeString(normal).map(([piece]) => piece) ?? normal.split(/(?=▁)/);
    for (const piece of pieces) counts.set(piece, (counts.get(piece) ?? 0) + 1);
  }
  return counts;
}

function train_bpe(counts, merges_wanted) {
  const words = [...counts].map(([word, count]) => [[...word], count]);
  const alphabet = new Set(words.flatMap(([symbols]) => symbols));
  const merges = [];
  while (merges.length < merges_wanted) {
    const pairs = new Map();
    for (const [symbols, count] of words)
      for (let i = 0; i + 1 < symbols.length; ++i) {
        const key = JSON.stringify([symbols[i], symbols[i + 1]]);
        pairs.set(key, (pairs.get(key) ?? 0) + count);
      }
    const best = [...pairs].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))[0];
    if (!best || best[1] < 2) break;
    const [left, right] = JSON.parse(best[0]);
    merges.push([left, right]);
    for (const entry of words) {
      const merged = [];
      for (let i = 0; i < entry[0].length; ++i) {
        if (entry[0][i] === left && entry[0][i + 1] === right) {
          merged.push(left + right);
          ++i;
        } else merged.push(entry[0][i]);
      }
      entry[0] = merged;
    }
  }
  return { alphabet: [...alphabet].sort(), merges };
}

const numbered = (tokens) => Object.fromEntries([...new Set(tokens)].map((token, id) => [token, id]));
const added = (vocab, content, extra = {}) => ({ id: vocab[content] ?? Object.keys(vocab).length, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true, ...extra });
const kEmpty = { version: '1.0', truncation: null, padding: null, added_tokens: [], normalizer: null, pre_tokenizer: null, post_processor: null, decoder: null };
const kBytes = (() => {
  const { byteLevelAlphabet } = require('tokenizers');
  return byteLevelAlphabet().sort();
})();

function steps(pre_tokenizer, normalizer = null) {
  return Tokenizer.fromString(JSON.stringify({ ...kEmpty, normalizer, pre_tokenizer, model: { type: 'BPE', vocab: {}, merges: [] } }));
}

function byte_level(pre_tokenizer, normalizer, model = {}) {
  const { merges } = train_bpe(words_of(steps(pre_tokenizer, normalizer), kText.repeat(2)), 150);
  const vocab = numbered([...kBytes, ...merges.map((pair) => pair.join('')), '<|end|>', '<mark>']);
  return {
    ...kEmpty, normalizer, pre_tokenizer,
    added_tokens: [added(vocab, '<|end|>'), added(vocab, '<mark>', { special: false, lstrip: true, rstrip: true })],
    post_processor: { type: 'TemplateProcessing', single: [{ SpecialToken: { id: '<|end|>', type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }], pair: [{ Sequence: { id: 'A', type_id: 0 } }], special_tokens: { '<|end|>': { id: '<|end|>', ids: [vocab['<|end|>']], tokens: ['<|end|>'] } } },
    decoder: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: { type: 'BPE', dropout: null, unk_token: null, continuing_subword_prefix: null, end_of_word_suffix: null, fuse_unk: false, byte_fallback: false, ignore_merges: false, vocab, merges, ...model },
  };
}

function pieces(pre_tokenizer, normalizer) {
  const plain = kText.replaceAll(' ', '▁').split('\n').map((line) => `▁${line}`);
  const counts = new Map();
  for (const word of plain.flatMap((line) => line.split(/(?=▁)/))) counts.set(word, (counts.get(word) ?? 0) + 2);
  const { alphabet, merges } = train_bpe(counts, 150);
  const bytes = Array.from({ length: 256 }, (_, b) => `<0x${b.toString(16).toUpperCase().padStart(2, '0')}>`);
  const kept = alphabet.filter((c) => c < '\u0250' || c === '▁');
  const usable = merges.filter((pair) => pair.every((part) => [...part].every((c) => kept.includes(c))));
  const vocab = numbered(['<unk>', '<s>', '</s>', ...bytes, ...kept, ...usable.map((pair) => pair.join(''))]);
  return {
    ...kEmpty, normalizer, pre_tokenizer,
    added_tokens: ['<unk>', '<s>', '</s>'].map((token) => added(vocab, token)),
    post_processor: { type: 'TemplateProcessing', single: [{ SpecialToken: { id: '<s>', type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }], pair: [{ Sequence: { id: 'A', type_id: 0 } }], special_tokens: { '<s>': { id: '<s>', ids: [1], tokens: ['<s>'] } } },
    model: { type: 'BPE', dropout: null, unk_token: '<unk>', continuing_subword_prefix: null, end_of_word_suffix: null, fuse_unk: true, byte_fallback: true, ignore_merges: false, vocab, merges: usable },
  };
}

function word_piece() {
  const normalizer = { type: 'BertNormalizer', clean_text: true, handle_chinese_chars: true, strip_accents: null, lowercase: true };
  const pre_tokenizer = { type: 'BertPreTokenizer' };
  const words = [...words_of(steps(pre_tokenizer, normalizer), kText).keys()];
  const parts = words.flatMap((word) => { const c = [...word]; return [word, c[0], ...c.slice(1).map((x) => `##${x}`), ...(c.length > 4 ? [c.slice(0, 3).join(''), `##${c.slice(3).join('')}`] : [])]; });
  const vocab = numbered(['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', ...parts]);
  return {
    ...kEmpty, normalizer, pre_tokenizer,
    added_tokens: ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'].map((token) => added(vocab, token)),
    post_processor: { type: 'BertProcessing', sep: ['[SEP]', 3], cls: ['[CLS]', 2] },
    decoder: { type: 'WordPiece', prefix: '##', cleanup: true },
    model: { type: 'WordPiece', unk_token: '[UNK]', continuing_subword_prefix: '##', max_input_chars_per_word: 100, vocab },
  };
}

function unigram() {
  const counts = new Map();
  for (const word of kText.split(/\s/).map((w) => `▁${w}`)) {
    const c = [...word];
    for (let i = 0; i < c.length; ++i) for (let n = 1; n <= 5 && i + n <= c.length; ++n) {
      const part = c.slice(i, i + n).join('');
      counts.set(part, (counts.get(part) ?? 0) + 1);
    }
  }
  const kept = [...counts].filter(([part, count]) => [...part].length === 1 || count > 2);
  const vocab = [['<unk>', 0], ...kept.map(([part, count], i) => [part, Math.log(count / 3000) - 0.37 * [...part].length ** 0.3 - 1e-4 * i])];
  return {
    ...kEmpty,
    normalizer: { type: 'NFKC' },
    pre_tokenizer: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true },
    model: { type: 'Unigram', unk_id: 0, vocab, byte_fallback: false },
  };
}

const kLlama3 = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const split = (pattern) => ({ type: 'Sequence', pretokenizers: [{ type: 'Split', pattern: { Regex: pattern }, behavior: 'Isolated', invert: false }, { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false }] });
const own_regex = (add_prefix_space) => ({ type: 'ByteLevel', add_prefix_space, trim_offsets: true, use_regex: true });

const kKinds = {
  gpt2: () => byte_level(own_regex(false), null),
  roberta: () => byte_level(own_regex(true), null),
  llama3: () => byte_level(split(kLlama3), null, { ignore_merges: true }),
  qwen2: () => byte_level(split(kLlama3.replace('{1,3}', '')), { type: 'NFC' }),
  smollm: () => byte_level({ type: 'Sequence', pretokenizers: [{ type: 'Digits', individual_digits: true }, own_regex(false)] }, null),
  llama2: () => pieces(null, { type: 'Sequence', normalizers: [{ type: 'Prepend', prepend: '▁' }, { type: 'Replace', pattern: { String: ' ' }, content: '▁' }] }),
  metaspace: () => pieces({ type: 'Metaspace', replacement: '▁', prepend_scheme: 'first', split: false }, null),
  gemma: () => pieces({ type: 'Split', pattern: { String: ' ' }, behavior: 'MergedWithPrevious', invert: false }, { type: 'Replace', pattern: { String: ' ' }, content: '▁' }),
  bert: word_piece,
  unigram,
};

mkdirSync(target, { recursive: true });
const strings = nasty();
writeFileSync(join(target, 'strings.json'), `${JSON.stringify(strings)}\n`);
for (const [name, make] of Object.entries(kKinds)) {
  const tokenizer = make();
  const reference = Tokenizer.fromString(JSON.stringify(tokenizer));
  const ids = [];
  for (const string of strings) ids.push((await reference.encode(string)).getIds());
  writeFileSync(join(target, `${name}.json`), `${JSON.stringify({ library: 'tokenizers 0.23.2', tokenizer, ids })}\n`);
  console.log(name, Object.keys(tokenizer.model.vocab).length, strings.length);
}
