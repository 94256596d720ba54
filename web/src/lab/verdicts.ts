// Verdicts: their words, their marks, and how many claims have each.
import type { Claim, LabDocument, Result, Verdict } from '../generated/lab_schema';
import { h } from '../dom';
import { plural } from '../format';

export const kVerdicts: Verdict[] = ['holds', 'holds in part', 'fails', 'undecided'];

/// Colour is never the only sign.
const kMarks: Record<Verdict, string> = {
  holds: '✓',
  'holds in part': '◐',
  fails: '✗',
  undecided: '?',
};

export function badge(verdict: Verdict): HTMLElement {
  return h(
    'span',
    { class: 'verdict', 'data-verdict': verdict },
    h('span', { 'aria-hidden': 'true' }, kMarks[verdict]),
    ` ${verdict}`,
  );
}

/// Of the run at hand; of this project's where the claim was not run.
export const verdict_of = (claim: Claim): Verdict =>
  claim.result?.verdict ?? claim.finding.verdict;

export const results_of = (document: LabDocument): Result[] =>
  document.claims.flatMap((claim) => (claim.result ? [claim.result] : []));

/// "13 claims hold, 7 hold in part, 1 fails, 2 are undecided."
export function tally(claims: Claim[]): string {
  const count = (verdict: Verdict) =>
    claims.filter((claim) => verdict_of(claim) === verdict).length;
  const words: [number, string, string][] = [
    [count('holds'), 'holds', 'hold'],
    [count('holds in part'), 'holds in part', 'hold in part'],
    [count('fails'), 'fails', 'fail'],
    [count('undecided'), 'is undecided', 'are undecided'],
  ];
  const parts = words
    .filter(([number]) => number > 0)
    .map(([number, one, many], index) => {
      const subject = index === 0 ? plural(number, 'claim') : String(number);
      return `${subject} ${number === 1 ? one : many}`;
    });
  return `${parts.join(', ')}.`;
}
