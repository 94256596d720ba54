// All claims in one table, filtered by verdict.
import type { Claim, Verdict } from '../generated/lab_schema';
import { choice } from '../charts/choice';
import { h } from '../dom';
import { badge, kVerdicts, verdict_of } from './verdicts';

export function overview(claims: Claim[]): HTMLElement {
  const rows = claims.map(row);
  const present = kVerdicts.filter((verdict) =>
    claims.some((claim) => verdict_of(claim) === verdict),
  );
  const options: [Verdict | 'all', string][] = [['all', 'All']];
  for (const verdict of present) options.push([verdict, verdict]);
  const filter = choice('Show claims', options, (chosen) => {
    claims.forEach((claim, index) => {
      rows[index]!.hidden = chosen !== 'all' && verdict_of(claim) !== chosen;
    });
  });
  const head = ['claim', 'verdict', 'by', 'what this project found'];
  return h(
    'div',
    {},
    h('div', { class: 'filters' }, filter),
    h(
      'div',
      { class: 'table-scroll', tabindex: 0, role: 'region', 'aria-label': 'All claims' },
      h(
        'table',
        { class: 'exhibit overview' },
        h('thead', {}, h('tr', {}, ...head.map((name) => h('th', { scope: 'col' }, name)))),
        h('tbody', {}, ...rows),
      ),
    ),
  );
}

function row(claim: Claim): HTMLElement {
  return h(
    'tr',
    { 'data-claim': claim.id },
    h('th', { scope: 'row' }, h('a', { href: `#claim-${claim.id}` }, claim.title)),
    h('td', {}, badge(verdict_of(claim))),
    h('td', {}, claim.finding.by),
    h('td', { class: 'found' }, claim.finding.summary),
  );
}
