// The triangle of angular distances: row n, column l is the angle between h_l and h_{l+n}. The
// smallest of each row, the block that changes least, is ringed.
import type { ProbeDocument } from '../generated/probe_schema';
import { h, s } from '../dom';
import { fixed } from '../format';
import { ramp } from '../palette';

export function distance_map(probe: ProbeDocument): HTMLElement {
  const L = probe.model.layers;
  const cell = Math.max(8, Math.min(30, Math.floor(760 / L)));
  const left = 44;
  const top = 26;
  const svg = s('svg', {
    viewBox: `0 0 ${left + L * cell + 8} ${top + L * cell + 4}`,
    class: 'distance-map',
    role: 'img',
    'aria-label': 'Angles between streams for every block of layers; small ones are dark',
    style: `max-width:${left + L * cell + 8}px`,
  });
  const most = Math.max(1e-9, ...probe.distance.flat());
  for (let n = 1; n <= L; ++n) {
    const row = probe.distance.filter((list) => list.length >= n).map((list) => list[n - 1]!);
    const least = Math.min(...row);
    row.forEach((value, l) => {
      const box = s(
        'rect',
        {
          x: left + l * cell,
          y: top + (n - 1) * cell,
          width: cell - 1,
          height: cell - 1,
          class: value === least ? 'least' : '',
          style: `fill:${ramp(value / most)}`,
        },
        s('title', {}, `layers ${l} to ${l + n - 1}: ${fixed(value, 3)}`),
      );
      svg.append(box);
    });
  }
  const step = L > 16 ? 4 : L > 8 ? 2 : 1;
  for (let i = 0; i < L; i += step) {
    svg.append(
      s('text', { x: left + (i + 0.5) * cell, y: top - 8, 'text-anchor': 'middle' }, String(i)),
      s('text', { x: left - 8, y: top + (i + 0.75) * cell, 'text-anchor': 'end' }, String(i + 1)),
    );
  }
  return h(
    'figure',
    { class: 'plot' },
    svg,
    h(
      'figcaption',
      { class: 'quiet' },
      'Columns: the first layer of the block. Rows: its length. Ringed: of each length the block ' +
        `that changes the stream least. The brightest cell is ${fixed(most, 2)} half turns.`,
    ),
  );
}
