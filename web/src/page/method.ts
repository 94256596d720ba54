// How it was done and with what, so that it can be repeated.
import { h } from '../dom';
import { button } from '../dom';
import { whole } from '../format';
import type { JointLaw } from '../document';
import { simple_table } from './transition_tables';
import type { Model } from '../model';

const kMethod = [
  'Every run trains one transformer of the given depth and width and is scored by its loss on ' +
    'held-out text; runs that differ only in their seed are averaged.',
  'A transition between two depths is the size N at which the deeper network starts to win at ' +
    'equal N. Where the grid does not contain it, the report gives a one-sided bound instead.',
  'The law ln d = a + b·L is fitted to the transitions as in arXiv 2006.12467. Intervals are ' +
    '95 %, errors of coefficients one standard error.',
  '“Above best” compares with the lowest loss of any depth at the same size, other depths ' +
    'interpolated in ln N between their own sizes and never beyond them.',
];

export function method(model: Model): HTMLElement[] {
  const { study } = model;
  const blocks: HTMLElement[] = [
    h('ul', { class: 'method' }, ...kMethod.map((sentence) => h('li', {}, sentence))),
  ];
  const columns = h('div', { class: 'columns' });
  for (const [name, lines] of study.facts) columns.append(fact_list(name, lines));
  if (study.versions.length > 0) columns.append(fact_list('versions', study.versions));
  if (study.joint) columns.append(joint_law(study.joint));
  if (columns.childElementCount > 0) blocks.push(columns);
  blocks.push(spec(study.toml));
  return blocks;
}

/// The joint law's terms, each with its coefficient and interval.
function joint_law(joint: JointLaw): HTMLElement {
  const rows = joint.coefficients.map(({ name, value, low, high }) =>
    h(
      'tr',
      {},
      h('th', { scope: 'row' }, name),
      h('td', { class: 'number' }, number_text(value)),
      h('td', { class: 'number' }, low === null || high === null ? '–' : interval(low, high)),
    ),
  );
  const errors: string[] = [];
  if (joint.mean_error !== null) errors.push(`mean error ${share(joint.mean_error)}`);
  if (joint.holdout_error !== null) errors.push(`${share(joint.holdout_error)} on shapes left out`);
  return h(
    'section',
    { class: 'fact-list' },
    h('h3', {}, 'Joint law'),
    h('p', { class: 'quiet' }, [joint.form, ...errors].filter(Boolean).join(', ')),
    simple_table('Coefficients', ['', 'value', '95 % interval'], rows),
  );
}

const number_text = (value: number): string => String(Number(value.toPrecision(4)));
const interval = (low: number, high: number): string =>
  `${number_text(low)} to ${number_text(high)}`;
const share = (value: number): string => `${(100 * value).toFixed(2)} %`;

/// Names of facts for people; others are shown as the document has them.
const kFactNames: Record<string, string> = {
  xxh128: 'hash (XXH128)',
  hash: 'hash',
  tokens_hash: 'hash of the tokens',
  'tokens.train': 'tokens to train on',
  'tokens.valid': 'tokens held out',
  'tokens.test': 'tokens of the test',
};

function fact_list(name: string, lines: [string, string][]): HTMLElement {
  return h(
    'section',
    { class: 'fact-list' },
    h('h3', {}, name[0]!.toUpperCase() + name.slice(1).replaceAll('_', ' ')),
    h(
      'dl',
      {},
      ...lines.flatMap(([key, value]) => [
        h('dt', {}, kFactNames[key] ?? key.replaceAll(/[_.]/g, ' ')),
        h('dd', {}, /^\d{5,}$/.test(value) ? whole(Number(value)) : value),
      ]),
    ),
  );
}

function spec(toml: string): HTMLElement {
  if (!toml) return h('p', { class: 'quiet' }, 'The document holds no study specification.');
  const copy = button('Copy', 'Copy the specification', () => {
    void navigator.clipboard?.writeText(toml).then(() => (copy.textContent = 'Copied'));
  });
  return h(
    'details',
    { class: 'spec', open: toml.length < 4000 },
    h('summary', {}, 'The study’s specification'),
    h('div', { class: 'spec-body' }, copy, h('pre', { tabindex: 0 }, toml)),
  );
}
