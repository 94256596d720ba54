// The report's input, read with suspicion: any field may be null, missing or of another type, and
// the page must still say what it can. After `read_study` every number is finite or null and every
// list exists. The fields are defined in schema/report.schema.json; a name that is not in it does
// not compile.
import * as schema from './generated/report_schema';

export type RunField = keyof schema.Run;
export type Value = number | string | null;

export interface Run {
  id: string;
  layers: number;
  width: number | null;
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
  /// Every field of the schema, for the table, its filter and its CSV.
  fields: Record<RunField, Value>;
}

export interface Curve {
  id: string;
  points: [number, number][]; // tokens, held-out loss
  training: [number, number][];
}

export interface Advice {
  text: string;
  command: string;
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

/// ln d = a + b L with standard errors and their correlation.
export interface Law {
  name: string;
  a: number;
  b: number;
  a_error: number | null;
  b_error: number | null;
  correlation: number | null;
  points: number | null;
  reading: string;
}

/// A law of loss in width, depth, parameters and tokens: exponents and the floor.
export interface JointLaw {
  form: string;
  mean_error: number | null;
  holdout_error: number | null;
  coefficients: { name: string; value: number; low: number | null; high: number | null }[];
}

export interface Study {
  title: string;
  created: string;
  question: string;
  answer: string[];
  advice: Advice[];
  toml: string;
  facts: [string, [string, string][]][];
  versions: [string, string][];
  runs: Run[];
  curves: Curve[];
  transitions: Transition[];
  law: Law | null;
  joint: JointLaw | null;
  verdict: string;
  cautions: string[]; // what the fit says the runs cannot determine
  has_fit: boolean;
  published: Law | null;
}

/// What a document claims to be a T: the fields may be read, their values are unknown.
type Claimed<T> = { readonly [Field in keyof T]?: unknown };

const object = <T>(value: unknown): Claimed<T> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Claimed<T>) : {};
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
    return Object.entries(value).flatMap(([key, inner]) =>
      flatten(inner, prefix ? `${prefix}.${key}` : key),
    );
  }
  if (typeof value === 'number' && !Number.isInteger(value)) {
    return [[prefix, String(Number(value.toPrecision(8)))]];
  }
  return [[prefix, String(value)]];
}

/// A seed may be zero or a name; every other number of a run is above zero.
function read_field(name: RunField, numeric: boolean, value: unknown): Value {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (name === 'seed') return number(value) ?? (text(value) || null);
  return numeric ? positive(value) : text(value) || null;
}

function read_run(value: unknown): Run | null {
  const run = object<schema.Run>(value);
  const fields = {} as Run['fields'];
  for (const { name, numeric } of schema.kRunFields) {
    fields[name] = read_field(name, numeric, run[name]);
  }
  const count = (name: RunField): number | null => positive(fields[name]);
  const layers = count('layers');
  if (layers === null) return null;
  fields.status ??= 'unknown';
  return {
    id: text(fields.id),
    layers,
    width: count('width'),
    params: count('params'),
    tokens: count('tokens'),
    seed: text(fields.seed),
    loss: count('loss'),
    bits_per_byte: count('bits_per_byte'),
    status: text(fields.status),
    reason: text(fields.reason),
    seconds: count('seconds'),
    tokens_per_second: count('tokens_per_second'),
    flops: count('flops'),
    fields,
  };
}

function read_transition(value: unknown): Transition | null {
  const from = object<schema.Transition>(value);
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

function read_points(value: unknown): [number, number][] {
  const points: [number, number][] = [];
  for (const point of list(value)) {
    const tokens = Array.isArray(point) ? positive(point[0]) : null;
    const loss = Array.isArray(point) ? positive(point[1]) : null;
    if (tokens !== null && loss !== null) points.push([tokens, loss]);
  }
  return points;
}

function read_curve(value: unknown): Curve {
  const curve = object<schema.Curve>(value);
  return {
    id: text(curve.id),
    points: read_points(curve.points),
    training: read_points(curve.training),
  };
}

function read_advice(value: unknown): Advice {
  const advice = object<schema.Advice>(value);
  return { text: text(advice.text), command: text(advice.command) };
}

function read_law(value: unknown, name: string): Law | null {
  const law = object<schema.Law>(value);
  const a = number(law.a);
  const b = number(law.b);
  if (a === null || b === null) return null;
  return {
    name,
    a,
    b,
    a_error: number(law.a_error),
    b_error: number(law.b_error),
    correlation: number(law.correlation),
    points: Array.isArray(law.points) ? law.points.length : null,
    reading: text(law.reading),
  };
}

const kTerms: Record<string, string> = {
  w: 'exponent of width',
  L: 'exponent of depth',
  P: 'exponent of parameters',
  T: 'exponent of tokens',
};

function read_joint(value: unknown): JointLaw | null {
  const joint = object<schema.Joint>(value);
  const form = text(joint.form);
  if (form === '') return null;
  const coefficients: JointLaw['coefficients'] = [];
  for (const [term, entry] of Object.entries(object<Record<string, unknown>>(joint.coefficients))) {
    const part = object<schema.Coefficient>(entry);
    const exponent = number(part.exponent);
    const log = number(part.log);
    const read = exponent === null ? Math.exp : (x: number) => x;
    const [low, high] = list(exponent === null ? part.log_interval : part.exponent_interval).map(
      (end) => (number(end) === null ? null : read(number(end)!)),
    );
    const found = exponent ?? log;
    if (found === null) continue;
    const name = exponent === null ? 'floor of the loss' : (kTerms[term] ?? term);
    coefficients.push({ name, value: read(found), low: low ?? null, high: high ?? null });
  }
  return {
    form,
    mean_error: number(joint.mean_error),
    holdout_error: number(joint.holdout_error),
    coefficients,
  };
}

function read_published(value: unknown): Law | null {
  const name = text(object<schema.PublishedLaw>(value).name);
  return read_law(value, name ? `published (${name})` : 'published');
}

function present<T>(values: (T | null)[]): T[] {
  return values.filter((value): value is T => value !== null);
}

export function read_study(document: unknown): Study {
  const root = object<schema.ReportDocument>(document);
  const spec = object<schema.Spec>(root.spec);
  const fit = object<schema.Fit>(root.fit);
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
    advice: list(root.advice)
      .map(read_advice)
      .filter((advice) => advice.text !== ''),
    toml: text(spec.toml),
    facts,
    versions: flatten(root.versions),
    runs: present(list(root.runs).map(read_run)),
    curves: list(root.curves)
      .map(read_curve)
      .filter((curve) => curve.points.length + curve.training.length > 0),
    transitions: present(list(fit.transitions).map(read_transition)),
    law: read_law(fit.law, 'this study'),
    joint: read_joint(fit.joint),
    verdict: text(fit.verdict),
    cautions: list(fit.warnings).map(text).filter(Boolean),
    has_fit: root.fit !== null && root.fit !== undefined,
    published: read_published(root.published),
  };
}
