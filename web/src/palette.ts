// Colours. Depths take an ordered, colour-blind safe ramp (viridis) from shallow to deep; its ends
// are cut so that the darkest and the lightest still stand out from the page, in light and dark.
// All are CSS variables (--depth-0, ...), so that theme and print switch without a redraw.
import { interpolateViridis } from 'd3-scale-chromatic';

const at = (share: number, from: number, to: number): string =>
  interpolateViridis(from + share * (to - from));

export function depth_styles(count: number): string {
  const share = (i: number) => (count === 1 ? 0.5 : i / (count - 1));
  const rules = (from: number, to: number) =>
    Array.from({ length: count }, (_, i) => `--depth-${i}:${at(share(i), from, to)}`).join(';');
  const light = rules(0.0, 0.84);
  const dark = rules(0.3, 1.0);
  return (
    `:root{${light}}` +
    `@media (prefers-color-scheme:dark){:root:not([data-theme=light]){${dark}}}` +
    `:root[data-theme=dark]{${dark}}` +
    `@media print{:root,:root[data-theme=dark],:root:not([data-theme=light]){${light}}}`
  );
}

export const depth_colour = (index: number): string => `var(--depth-${index})`;

/// The map's ramp: low loss is the strong end. share 0 = best, 1 = worst.
export const ramp = (share: number): string => interpolateViridis(Math.min(1, Math.max(0, share)));

/// Black or white, whichever reads better on `ramp(share)`.
export const ink_on_ramp = (share: number): string => (share > 0.62 ? '#1b1b1b' : '#ffffff');
