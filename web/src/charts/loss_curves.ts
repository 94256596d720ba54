// Loss along training, one line a run, coloured by depth. With very many runs an even selection is
// drawn, and the chart says how many of how many.
import type { Curve, Run } from '../document';
import { s } from '../dom';
import { fixed, layers, si, whole } from '../format';
import type { Model } from '../model';
import { depth_colour } from '../palette';
import type { Store } from '../store';
import { padded } from './axes';
import { polyline } from './marks';
import { Plot, type Content, type View } from './plot';
import type { Target } from './tooltip';

const kMostCurves = 240;
const kMostPoints = 160;

interface Line {
  run: Run;
  points: [number, number][];
  colour: string;
}

export function loss_curves(model: Model, store: Store): Plot {
  const lines = select(model);
  const all = model.study.curves.length;
  const note =
    lines.length < all
      ? `${whole(lines.length)} of ${whole(all)} curves, evenly chosen over depth and size.`
      : `${whole(all)} curves. Loss is what the run recorded along training.`;
  return new Plot({
    id: 'loss-curves',
    title: 'Loss along training',
    describe: 'Loss against tokens seen, one line for each run.',
    height: 400,
    label_room: 16,
    content: () => make_content(lines, store),
    note,
  });
}

/// Every curve when there are few; else every k-th after sorting by depth and size.
function select(model: Model): Line[] {
  const lines: Line[] = [];
  for (const curve of model.study.curves) {
    const run = model.by_id.get(curve.id);
    if (run)
      lines.push({
        run,
        points: thin(curve),
        colour: depth_colour(model.depths.indexOf(run.layers)),
      });
  }
  lines.sort((a, b) => a.run.layers - b.run.layers || (a.run.params ?? 0) - (b.run.params ?? 0));
  if (lines.length <= kMostCurves) return lines;
  const step = lines.length / kMostCurves;
  return Array.from({ length: kMostCurves }, (_, i) => lines[Math.floor(i * step)]!);
}

function thin(curve: Curve): [number, number][] {
  const count = curve.points.length;
  if (count <= kMostPoints) return curve.points;
  return Array.from(
    { length: kMostPoints },
    (_, i) => curve.points[Math.round((i * (count - 1)) / (kMostPoints - 1))]!,
  );
}

function make_content(lines: Line[], store: Store): Content {
  const shown = lines.filter((line) => store.shown(line.run.layers));
  const losses = lines
    .flatMap((line) => line.points.map((point) => point[1]))
    .sort((a, b) => a - b);
  // The first steps are far above the rest: the axis ends where 98 % of the points do.
  const top = losses[Math.floor(0.98 * (losses.length - 1))] ?? 1;
  const thickness = shown.length > 80 ? 1 : 1.6;
  const content: Content = {
    x: {
      label: 'tokens seen',
      scale: 'log',
      domain: padded(
        lines.flatMap((line) => line.points.map((point) => point[0])),
        'log',
        0.02,
      ),
      format: si,
    },
    y: {
      label: 'loss, nats per token',
      scale: 'linear',
      domain: padded([losses[0] ?? 0, top], 'linear'),
      format: (value) => fixed(value, 1),
    },
    targets: shown.flatMap(targets),
    table: {
      header: ['id', 'layers', 'width', 'seed', 'tokens', 'loss'],
      rows: lines.flatMap(({ run, points }) =>
        points.map(([tokens, loss]) => [run.id, run.layers, run.width, run.seed, tokens, loss]),
      ),
    },
    draw: (view) => {
      for (const line of shown) {
        view.inside.append(
          s(
            'g',
            { class: 'series', 'data-depth': line.run.layers },
            draw_line(view, line, thickness, 'stroke-opacity:.75'),
          ),
        );
      }
    },
  };
  if (lines.length === 0) content.empty = 'The document holds no training curves.';
  return content;
}

function draw_line(view: View, line: Line, width: number, extra: string): SVGPathElement {
  const points = line.points.map((p): [number, number] => [view.x(p[0]), view.y(p[1])]);
  return polyline(points, line.colour, width, extra);
}

function targets(line: Line): Target[] {
  const { run } = line;
  return line.points.map(([tokens, loss]) => ({
    x: tokens,
    y: loss,
    colour: line.colour,
    title: `${layers(run.layers)} × ${run.width ?? '?'} wide, seed ${run.seed || '?'}`,
    lines: [
      ['tokens', si(tokens)],
      ['loss', fixed(loss, 4)],
      ['run', run.id.slice(0, 12)],
    ],
    highlight: (view: View) => draw_line(view, line, 3, ''),
  }));
}
