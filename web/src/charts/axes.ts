// Scales, ticks and the drawn axes: hairline grid, labels with units, no boxes.
import { ticks } from 'd3-array';
import { scaleLinear, scaleLog } from 'd3-scale';
import { s } from '../dom';

export interface AxisSpec {
  label: string;
  scale: 'log' | 'linear';
  domain: [number, number];
  format: (value: number) => string;
  /// Draw exactly these ticks when given (depths, for instance).
  values?: number[];
}

export type Scale = (value: number) => number;
export interface InvertibleScale {
  map: Scale;
  invert: Scale;
}

export interface Area {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

export function make_scale(spec: AxisSpec, range: [number, number]): InvertibleScale {
  const scale =
    spec.scale === 'log'
      ? scaleLog().domain(spec.domain).range(range)
      : scaleLinear().domain(spec.domain).range(range);
  return { map: (value) => scale(value), invert: (pixel) => scale.invert(pixel) };
}

/// A log axis of several decades labels 1, 2, 5; of many only the powers of ten; one shorter than
/// a decade is ticked like a linear one.
export function axis_ticks(spec: AxisSpec, count: number): number[] {
  const [low, high] = spec.domain;
  if (spec.values) return spec.values.filter((value) => value >= low && value <= high);
  if (spec.scale === 'linear' || high / low < 4) return ticks(low, high, count);
  for (const mantissas of [[1, 2, 5], [1, 3], [1]]) {
    const values: number[] = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high) + 1e-9; ++power) {
      for (const mantissa of mantissas) {
        const value = mantissa * 10 ** power;
        if (value >= low * 0.999999 && value <= high * 1.000001) values.push(value);
      }
    }
    if (values.length <= count + 2 || mantissas.length === 1) return values;
  }
  return [];
}

export function padded(values: number[], scale: 'log' | 'linear', share = 0.05): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (!Number.isFinite(low)) return scale === 'log' ? [1, 10] : [0, 1];
  if (scale === 'log') {
    const pad = Math.max((high / low) ** share, low === high ? 2 : 1.0001);
    return [low / pad, high * pad];
  }
  const pad = low === high ? Math.max(0.05 * Math.abs(low), 1e-6) : (high - low) * share;
  return [low - pad, high + pad];
}

const kText = 'fill:var(--ink-soft);font-size:12px';

export function draw_axes(
  area: Area,
  x: AxisSpec,
  y: AxisSpec,
  map_x: Scale,
  map_y: Scale,
): SVGGElement {
  const g = s('g', { class: 'axes', 'aria-hidden': 'true' });
  const width = area.right - area.left;
  const x_ticks = thin_out(axis_ticks(x, Math.max(2, Math.floor(width / 80))), map_x, x.format);
  for (const value of x_ticks) {
    const at = Math.round(map_x(value)) + 0.5;
    g.append(
      s('line', { x1: at, x2: at, y1: area.top, y2: area.bottom + 5, style: 'stroke:var(--grid)' }),
      s(
        'text',
        { x: at, y: area.bottom + 19, 'text-anchor': 'middle', style: kText },
        x.format(value),
      ),
    );
  }
  for (const value of axis_ticks(y, Math.max(3, Math.floor((area.bottom - area.top) / 48)))) {
    const at = Math.round(map_y(value)) + 0.5;
    g.append(
      s('line', { x1: area.left, x2: area.right, y1: at, y2: at, style: 'stroke:var(--grid)' }),
      s(
        'text',
        { x: area.left - 8, y: at + 4, 'text-anchor': 'end', style: kText },
        y.format(value),
      ),
    );
  }
  const base = area.bottom + 0.5;
  g.append(
    s('line', { x1: area.left, x2: area.right, y1: base, y2: base, style: 'stroke:var(--axis)' }),
    s(
      'text',
      { x: area.right, y: area.bottom + 38, 'text-anchor': 'end', style: kText },
      `${x.label} →`,
    ),
    s('text', { x: 0, y: 13, style: kText }, `↑ ${y.label}`),
  );
  return g;
}

/// Leaves out ticks whose labels would touch.
function thin_out(values: number[], map: Scale, format: (value: number) => string): number[] {
  const kept: number[] = [];
  let end = -Infinity;
  for (const value of values) {
    const half = format(value).length * 3.8 + 3;
    if (map(value) - half < end) continue;
    kept.push(value);
    end = map(value) + half;
  }
  return kept;
}
