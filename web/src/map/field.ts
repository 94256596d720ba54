// Modelled times over the plane: one tile per depth and width that was asked for, coloured by the
// shape at its centre on a logarithmic ramp.
import { extent } from 'd3-array';
import { label } from '../charts/marks';
import type { View } from '../charts/plot';
import { s } from '../dom';
import { gpu_time, latency } from './answer';
import { time_colour } from './laws';
import type { MapState } from './state';

/// Edges halfway, in logarithms, between neighbouring values.
function edges(values: number[]): number[] {
  const between = values.slice(1).map((value, i) => Math.sqrt(value * values[i]!));
  const [first, last] = [values[0]!, values[values.length - 1]!];
  return [first ** 2 / between[0]!, ...between, last ** 2 / between[between.length - 1]!];
}

export function draw_field(view: View, state: MapState): void {
  const { colouring, plan, device } = state;
  if (colouring === 'none' || !plan) return;
  const { field } = state.map;
  const times =
    colouring === 'train'
      ? field.train_seconds_per_token[device]!.map((seconds) => seconds * plan.tokens)
      : field.decode_seconds[device]!;
  const [least, most] = extent(times) as [number, number];
  const share = (time: number) => Math.log(time / least) / Math.log(most / least);
  const x = edges(field.width).map((width) => view.x(width));
  const y = edges(field.layers).map((layers) => view.y(layers));
  const g = s('g', { class: 'field', style: 'opacity:var(--field)' });
  field.layers.forEach((_, row) => {
    field.width.forEach((_, column) => {
      const time = times[row * field.width.length + column]!;
      g.append(
        s('rect', {
          x: x[column]!.toFixed(1),
          y: y[row + 1]!.toFixed(1),
          width: (x[column + 1]! - x[column]! + 0.6).toFixed(1),
          height: (y[row]! - y[row + 1]! + 0.6).toFixed(1),
          style: `fill:${time_colour(share(time))}`,
        }),
      );
    });
  });
  view.inside.append(g);
  const text = colouring === 'train' ? gpu_time : latency;
  draw_key(view, text(least), text(most));
}

function draw_key(view: View, least: string, most: string): void {
  const width = view.narrow ? 56 : 120;
  const right = view.area.right - most.length * 7;
  const steps = 24;
  for (let i = 0; i < steps; ++i) {
    view.over.append(
      s('rect', {
        x: right - width + (i * width) / steps,
        y: 4,
        width: width / steps + 0.6,
        height: 9,
        style: `fill:${time_colour((i + 0.5) / steps)}`,
      }),
    );
  }
  view.over.append(
    label(right - width - 6, 13, least, 'var(--ink-soft)', 'end'),
    label(right + 6, 13, most, 'var(--ink-soft)'),
  );
}
