// Colours and marks of the laws.
import { interpolateViridis } from 'd3-scale-chromatic';
import type { MapDocument, StopPlan } from '../generated/map_schema';

export type Mark = 'fitted' | 'extrapolated' | 'convention';
const kMarks: Record<string, Mark> = { f: 'fitted', e: 'extrapolated', c: 'convention' };

export const law_mark = (plan: StopPlan, law: number): Mark =>
  kMarks[plan.marks[law]!] ?? 'extrapolated';

/// Solid inside the data, dashed outside, dotted where nothing was measured.
export const kDash: Record<Mark, string> = {
  fitted: '',
  extrapolated: '7 5',
  convention: '1.5 4',
};

/// Measured laws take strong, colour-blind safe colours; conventions stay grey.
const kStrong = ['var(--law-0)', 'var(--law-1)', 'var(--law-2)', 'var(--law-3)', 'var(--law-4)'];

export function law_colours(map: MapDocument): string[] {
  let next = 0;
  return map.laws.map((law) =>
    law.fitted ? kStrong[next++ % kStrong.length]! : 'var(--ink-soft)',
  );
}

export const time_colour = (share: number): string =>
  interpolateViridis(1 - Math.min(1, Math.max(0, share)));
