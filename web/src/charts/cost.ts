// Cost: loss against the training FLOPs of each run, with the frontier of runs that no cheaper run
// beats.
import { s } from '../dom';
import { duration, fixed, flops, layers, whole } from '../format';
import type { Run } from '../document';
import type { Model } from '../model';
import { depth_colour } from '../palette';
import type { Store } from '../store';
import { padded } from './axes';
import { choice } from './choice';
import { dots, polyline } from './marks';
import { Plot, type Content } from './plot';

type Mode = 'flops' | 'seconds';

export function cost(model: Model, store: Store): Plot {
  let mode: Mode = 'flops';
  const plot: Plot = new Plot({
    id: 'cost',
    title: 'What a loss costs',
    describe: 'Loss against training cost of every run, with the frontier of best runs.',
    height: 340,
    label_room: 16,
    content: () => make_content(model, store, mode),
    controls: [
      choice<Mode>(
        'Which cost',
        [
          ['flops', 'FLOPs'],
          ['seconds', 'Time'],
        ],
        (chosen) => {
          mode = chosen;
          plot.update(true);
        },
      ),
    ],
    note: 'One dot a finished run. Line: the runs that no cheaper shown run beats.',
  });
  return plot;
}

function frontier(runs: Run[], mode: Mode): Run[] {
  const best: Run[] = [];
  for (const run of [...runs].sort((a, b) => a[mode]! - b[mode]!)) {
    const last = best[best.length - 1];
    if (!last || run.loss! < last.loss!) best.push(run);
  }
  return best;
}

function make_content(model: Model, store: Store, mode: Mode): Content {
  const usable = model.finished.filter((run) => run[mode] !== null);
  const shown = usable.filter((run) => store.shown(run.layers));
  const content: Content = {
    x: {
      label: mode === 'flops' ? 'training FLOPs' : 'training time, seconds',
      scale: 'log',
      domain: padded(
        usable.map((run) => run[mode]!),
        'log',
        0.05,
      ),
      format: (value) =>
        mode === 'flops' ? value.toExponential(0).replace('e+', 'e') : duration(value),
    },
    y: {
      label: 'held-out loss, nats per token',
      scale: 'linear',
      domain: padded(
        usable.map((run) => run.loss!),
        'linear',
      ),
      format: (value) => fixed(value, 2),
    },
    targets: shown.map((run) => ({
      x: run[mode]!,
      y: run.loss!,
      colour: depth_colour(model.depths.indexOf(run.layers)),
      title: `${layers(run.layers)} × ${run.width ?? '?'} wide, seed ${run.seed || '?'}`,
      lines: [
        ['loss', fixed(run.loss, 4)],
        ['FLOPs', flops(run.flops)],
        ['time', duration(run.seconds)],
        ['parameters', whole(run.params)],
      ],
    })),
    table: {
      header: ['id', 'layers', 'width', 'params', 'flops', 'seconds', 'loss'],
      rows: usable.map((r) => [r.id, r.layers, r.width, r.params, r.flops, r.seconds, r.loss]),
    },
    draw: (view) => {
      const at = (run: Run): [number, number] => [view.x(run[mode]!), view.y(run.loss!)];
      const best = frontier(shown, mode).map(at);
      view.inside.append(polyline(best, 'var(--ink)', 1.4, 'stroke-opacity:.7'));
      model.depths.forEach((depth, index) => {
        const mine = shown.filter((run) => run.layers === depth);
        if (mine.length === 0) return;
        view.inside.append(
          s(
            'g',
            { class: 'series', 'data-depth': depth },
            dots(mine.map(at), depth_colour(index), usable.length > 800 ? 3.5 : 6),
          ),
        );
      });
    },
  };
  if (usable.length === 0)
    content.empty = `No finished run has a ${mode === 'flops' ? 'FLOP count' : 'time'}.`;
  return content;
}
