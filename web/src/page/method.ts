// How it was done and with what, so that it can be repeated.
import { h } from '../dom';
import { button } from '../dom';
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
  if (study.joint.length > 0) columns.append(fact_list('joint law', study.joint));
  if (columns.childElementCount > 0) blocks.push(columns);
  blocks.push(spec(study.toml));
  return blocks;
}

function fact_list(name: string, lines: [string, string][]): HTMLElement {
  return h(
    'section',
    { class: 'fact-list' },
    h('h3', {}, name[0]!.toUpperCase() + name.slice(1).replaceAll('_', ' ')),
    h(
      'dl',
      {},
      ...lines.flatMap(([key, value]) => [
        h('dt', {}, key.replaceAll('_', ' ')),
        h('dd', {}, value),
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
