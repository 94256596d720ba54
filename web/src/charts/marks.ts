// The marks all charts share. Ten thousand dots are one path: a dot is a line of length zero with
// round ends, so hovering and zooming stay smooth and the saved SVG stays vector.
import { area as area_path, line as line_path } from 'd3-shape';
import { s } from '../dom';

type Pair = [number, number];

export function dots(points: Pair[], colour: string, size: number): SVGPathElement {
  let d = '';
  for (const [x, y] of points) d += `M${x.toFixed(1)} ${y.toFixed(1)}h0`;
  return s('path', {
    d,
    class: 'dots',
    style: `fill:none;stroke:${colour};stroke-width:${size};stroke-linecap:round`,
  });
}

export function polyline(
  points: Pair[],
  colour: string,
  width: number,
  extra = '',
): SVGPathElement {
  const d = line_path<Pair>()(points.map(([x, y]): Pair => [round(x), round(y)])) ?? '';
  return s('path', {
    d,
    class: 'line',
    style: `fill:none;stroke:${colour};stroke-width:${width};stroke-linejoin:round;${extra}`,
  });
}

export function band(points: [number, number, number][], colour: string, opacity: number) {
  const path = area_path<[number, number, number]>()
    .x((p) => round(p[0]))
    .y0((p) => round(p[1]))
    .y1((p) => round(p[2]));
  return s('path', {
    d: path(points) ?? '',
    class: 'band',
    style: `fill:${colour};fill-opacity:${opacity};stroke:none`,
  });
}

const round = (value: number): number => Math.round(value * 10) / 10;

/// A label with a halo in the page's colour, readable over lines.
export function label(x: number, y: number, text: string, colour: string, anchor = 'start') {
  return s(
    'text',
    {
      x: round(x),
      y: round(y),
      'text-anchor': anchor,
      style:
        `fill:${colour};font-size:12px;font-weight:600;paint-order:stroke;stroke:var(--paper);` +
        'stroke-width:4px;stroke-linejoin:round',
    },
    text,
  );
}

export interface EndLabel {
  y: number;
  text: string;
  colour: string;
}

/// Pushes labels apart to at least `gap` pixels, keeping their order, inside [top, bottom].
export function spread(labels: EndLabel[], gap: number, top: number, bottom: number): EndLabel[] {
  const placed = labels.map((entry) => ({ ...entry })).sort((a, b) => a.y - b.y);
  let previous = top - gap;
  for (const entry of placed) {
    entry.y = Math.max(entry.y, previous + gap);
    previous = entry.y;
  }
  let next = bottom + gap;
  for (const entry of placed.reverse()) {
    entry.y = Math.min(entry.y, next - gap);
    next = entry.y;
  }
  return placed;
}

/// Keeps labels from overlapping: a label that would touch an earlier one is left out.
export class LabelRoom {
  private readonly taken_: [number, number, number, number][] = [];

  /// Takes the box of a 12 px label starting at x, with its baseline at y, if it is free.
  take(x: number, y: number, text: string): boolean {
    const box: [number, number, number, number] = [x, y - 11, x + text.length * 7.2, y + 3];
    const free = this.taken_.every(
      (other) => box[2] < other[0] || box[0] > other[2] || box[3] < other[1] || box[1] > other[3],
    );
    if (free) this.taken_.push(box);
    return free;
  }
}
