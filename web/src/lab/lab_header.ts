// The top of the page: the question, the tally of verdicts, and what was run.
import { sum } from 'd3-array';
import type { LabDocument } from '../generated/lab_schema';
import { h } from '../dom';
import { duration, plural } from '../format';
import { kVerdicts, results_of, tally, verdict_of } from './verdicts';

export function lab_header(document: LabDocument): HTMLElement {
  const when = document.created.replace('T', ' ').replace(/Z$/, '');
  return h(
    'header',
    { id: 'top' },
    h('p', { class: 'eyebrow' }, `Fathom ${document.versions.fathom ?? ''} lab · ${when}`),
    h('h1', {}, document.title),
    h('p', { class: 'question' }, 'What does depth do for a transformer?'),
    h(
      'div',
      { class: 'answer' },
      h('p', { class: 'lead' }, tally(document.claims)),
      h(
        'p',
        {},
        'Each claim is an experiment. The criterion was fixed before the experiment ran; the ' +
          'verdict follows from it. A failed criterion is a finding, not an error.',
      ),
    ),
    facts(document),
    cautions(document),
  );
}

function facts(document: LabDocument): HTMLElement {
  const results = results_of(document);
  const entries: [string, string][] = kVerdicts.map((verdict) => [
    String(document.claims.filter((claim) => verdict_of(claim) === verdict).length),
    verdict,
  ]);
  entries.push([duration(sum(results, (result) => result.part_seconds)), 'of computing']);
  return h(
    'dl',
    { class: 'facts' },
    ...entries.map(([value, name]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))),
  );
}

/// What a reader must know before believing the page.
function cautions(document: LabDocument): HTMLElement | null {
  const { claims } = document;
  const missing = claims.filter((claim) => claim.result === null).length;
  const quick = results_of(document).filter((result) => result.quick).length;
  const other = claims.filter(
    (claim) => claim.result !== null && claim.result.verdict !== claim.finding.verdict,
  );
  const lines: string[] = [];
  if (missing > 0)
    lines.push(
      `${plural(missing, 'claim was', 'claims were')} not run here; the verdict shown is the ` +
        'one this project found.',
    );
  if (quick > 0)
    lines.push(`${plural(quick, 'claim')} ran with --quick: fewer seeds and smaller sizes.`);
  if (other.length > 0)
    lines.push(
      `Verdicts that differ from those this project found: ` +
        `${other.map((claim) => claim.id).join(', ')}.`,
    );
  if (lines.length === 0) return null;
  return h(
    'ul',
    { class: 'warning cautions', role: 'note' },
    ...lines.map((line) => h('li', {}, line)),
  );
}
