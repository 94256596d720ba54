// Speed: training throughput against size, one line per depth. Tokens a second as measured, or
// the useful arithmetic, FLOPs of the run / seconds of the run.
import { group, median } from 'd3-array';
import type { Run } from '../document';
import { s } from '../dom';
import { layers, si, whole } from '../format';
import type { Model } from '../model';
import { depth_colour } from '../palette';
import type { Store } from '../store';
import { padded } from './axes';
import { choice } from './choice';
import { dots, label, polyline, spread, type EndLabel } from './marks';
import { Plot, type Content } from './plot';

type Mode = 'tokens' | 'flops';

const speed_of = (run: Run, mode: Mode): number | null =>
  mode === 'tokens'
    ? run.tokens_per_second
    : run.flops !== null && run.seconds !== null
      ? run.flops / run.seconds
      : null;

export function speed(model: Model, store: Store): Plot {
  let mode: Mode = 'tokens';
  const plot: Plot = new Plot({
    id: 'speed',
    title: 'Training speed against size',
    describe: 'Tokens per second, or useful FLOP per second, against parameters, by depth.',
    height: 340,
    label_room: 74,
    content: () => make_content(model, store, mode),
    controls: [
      choice<Mode>(
        'Which speed',
        [
          ['tokens', 'Tokens/s'],
          ['flops', 'FLOP/s'],
        ],
        (chosen) => {
          mode = chosen;
          plot.update(true);
        },
      ),
    ],
    note: 'Median over the runs of one shape. Of equal size, the deeper network is the narrower.',
  });
  return plot;
}

function make_content(model: Model, store: Store, mode: Mode): Content {
  const usable = model.study.runs.filter(
    (run) => run.params !== null && speed_of(run, mode) !== null,
  );
  const lines = [...group(usable, (run) => run.layers)]
    .sort((a, b) => a[0] - b[0])
    .map(([depth, runs]) => {
      const points = [...group(runs, (run) => run.params!)]
        .map(([params, same]): [number, number, Run] => [
          params,
          median(same, (run) => speed_of(run, mode)!)!,
          same[0]!,
        ])
        .sort((a, b) => a[0] - b[0]);
      return { depth, points, colour: depth_colour(model.depths.indexOf(depth)) };
    });
  const every = lines.flatMap((line) => line.points);
  const shown = lines.filter((line) => store.shown(line.depth));
  const unit = mode === 'tokens' ? 'tokens per second' : 'FLOP per second';
  const content: Content = {
    x: {
      label: 'parameters N',
      scale: 'log',
      domain: padded(
        every.map((p) => p[0]),
        'log',
        0.04,
      ),
      format: si,
    },
    y: {
      label: unit,
      scale: 'log',
      domain: padded(
        every.map((p) => p[1]),
        'log',
        0.06,
      ),
      format: si,
    },
    targets: shown.flatMap((line) =>
      line.points.map(([params, value, run]) => ({
        x: params,
        y: value,
        colour: line.colour,
        title: `${layers(line.depth)} × ${run.width ?? '?'} wide`,
        lines: [
          ['parameters', whole(params)],
          [unit, si(value)],
        ] as [string, string][],
      })),
    ),
    table: {
      header: ['layers', 'width', 'params', unit.replaceAll(' ', '_')],
      rows: lines.flatMap((line) =>
        line.points.map(([params, value, run]) => [line.depth, run.width, params, value]),
      ),
    },
    draw: (view) => {
      const ends: EndLabel[] = [];
      for (const line of shown) {
        const points = line.points.map((p): [number, number] => [view.x(p[0]), view.y(p[1])]);
        view.inside.append(
          s(
            'g',
            { class: 'series', 'data-depth': line.depth },
            polyline(points, line.colour, 1.8),
            dots(points, line.colour, points.length > 60 ? 3.5 : 5.5),
          ),
        );
        const last = points[points.length - 1];
        if (last) ends.push({ y: last[1] + 4, text: layers(line.depth), colour: line.colour });
      }
      if (view.narrow || ends.length > 16) return;
      for (const end of spread(ends, 15, view.area.top + 4, view.area.bottom + 4)) {
        view.over.append(label(view.area.right + 10, end.y, end.text, end.colour));
      }
    },
  };
  if (every.length === 0) content.empty = 'No run has a measured speed.';
  return content;
}
