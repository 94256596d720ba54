// One claim: what was said, what was done, the criteria, what came out, the verdict.
import type { Claim, JudgedCriterion, Result } from '../generated/lab_schema';
import type { Plot } from '../charts/plot';
import { h } from '../dom';
import { duration } from '../format';
import { exhibit_table, line_chart, number_text } from './exhibits';
import { badge, verdict_of } from './verdicts';

export function claim_view(claim: Claim, plots: Plot[]): HTMLElement {
  const own = claim.questions.flatMap((result, index) => [
    h('h4', {}, 'A question of your own'),
    h('p', { class: 'quiet' }, setup_text(result)),
    ...result_view(result, `${claim.id}-own-${index + 1}`, plots),
  ]);
  return h(
    'article',
    { class: 'claim', id: `claim-${claim.id}`, 'aria-labelledby': `claim-${claim.id}-title` },
    h(
      'div',
      { class: 'claim-head' },
      h('h3', { id: `claim-${claim.id}-title` }, claim.title),
      badge(verdict_of(claim)),
      h('span', { class: 'quiet' }, `by ${claim.finding.by}`),
    ),
    h('p', { class: 'statement' }, claim.statement),
    h('p', {}, h('b', {}, 'Found: '), claim.finding.summary),
    facts(claim),
    ...(claim.result
      ? result_view(claim.result, claim.id, plots)
      : [h('p', { class: 'quiet' }, `Not run here. ‘fathom lab run ${claim.id}’ runs it.`)]),
    ...own,
  );
}

function facts(claim: Claim): HTMLElement {
  const lines: [string, (Node | string)[]][] = [
    ['source', source(claim)],
    ['published', [claim.published]],
    ['experiment', [claim.experiment]],
    ['again', [h('code', {}, `fathom lab run ${claim.id}`), ` (${claim.cost.two_cores} on two cores)`]],
  ];
  if (verdict_of(claim) === 'undecided' && claim.undecided)
    lines.push(['to decide', [claim.undecided]]);
  return h(
    'dl',
    { class: 'claim-facts' },
    ...lines.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, ...value)]),
  );
}

function source(claim: Claim): (Node | string)[] {
  const parts: (Node | string)[] = [claim.source];
  if (claim.arxiv) {
    const address = `https://arxiv.org/abs/${claim.arxiv}`;
    parts.push(' (', h('a', { href: address, rel: 'noreferrer' }, `arXiv ${claim.arxiv}`), ')');
  }
  parts.push(`, ${claim.place}`);
  return parts;
}

function setup_text(result: Result): string {
  const given = Object.entries(result.setup).filter(([, value]) => value !== '');
  return given.map(([name, value]) => `${name} ${value}`).join(', ');
}

function result_view(result: Result, id: string, plots: Plot[]): HTMLElement[] {
  const charts = result.charts.map((chart, index) => line_chart(chart, `${id}-chart-${index + 1}`));
  plots.push(...charts);
  const blocks: HTMLElement[] = [];
  if (result.boundary) blocks.push(h('p', { class: 'boundary' }, sentence(result.boundary)));
  if (result.criteria.length > 0)
    blocks.push(
      h('h4', {}, 'Criteria, fixed beforehand'),
      h('ul', { class: 'criteria' }, ...result.criteria.map(criterion)),
    );
  blocks.push(...charts.map((chart) => chart.figure), ...result.tables.map(exhibit_table));
  for (const note of result.notes) blocks.push(h('p', { class: 'note' }, sentence(note)));
  const quick = result.quick ? ', with --quick' : '';
  const time = result.part_seconds < 0.1 ? 'under 0.1 s' : duration(result.part_seconds);
  blocks.push(h('p', { class: 'note' }, `Its parts took ${time} in all${quick}.`));
  return blocks;
}

const kOutcomes = { passes: '✓ passes', fails: '✗ fails', open: '? open' };

function criterion(judged: JudgedCriterion): HTMLElement {
  const [low, high] = judged.interval ?? [];
  const interval =
    typeof low === 'number' && typeof high === 'number'
      ? ` (${number_text(low, 4)} to ${number_text(high, 4)})`
      : '';
  const measured = judged.measured === null ? 'not measured' : number_text(judged.measured);
  return h(
    'li',
    { 'data-outcome': judged.outcome, 'data-criterion': judged.id },
    h('span', { class: 'outcome' }, kOutcomes[judged.outcome]),
    h(
      'div',
      {},
      h('b', { class: 'measured' }, measured),
      `${interval}, must be ${judged.range}`,
      h('div', { class: 'quiet' }, judged.text),
    ),
  );
}

/// Notes begin in lower case and end without a full stop.
const sentence = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;
