// Loss along training, one line per run, coloured by depth: the training loss, averaged, from the
// first steps on, and the held-out losses as dots; where there is no training loss, a line through
// the held-out ones. With very many runs an even selection is drawn, and the chart says how many.
import type { Run } from '../document';
import { s } from '../dom';
import { fixed, layers, plural, si, whole } from '../format';
import type { Model } from '../model';
import { depth_colour } from '../palette';
import type { Store } from '../store';
import { padded } from './axes';
import { dots, polyline } from './marks';
import { Plot, type Content, type View } from './plot';
import type { Target } from './tooltip';

const kMostCurves = 240;
const kMostPoints = 160;

type Points = [number, number][];

interface Line {
  run: Run;
  held_out: Points;
  training: Points;
  colour: string;
}

/// The points that the line goes through.
const course = (line: Line): Points => (line.training.length > 0 ? line.training : line.held_out);

export function loss_curves(model: Model, store: Store): Plot {
  return new Plot({
    id: 'loss-curves',
    title: 'Loss along training',
    describe: 'Loss against tokens seen, one line for each run.',
    height: 400,
    label_room: 16,
    content: () => make_content(select(model), store),
    note: () => note(model),
  });
}

function note(model: Model): string {
  const all = model.study.curves.length;
  const drawn = Math.min(all, kMostCurves);
  const count =
    drawn < all
      ? `${whole(drawn)} of ${whole(all)} curves, evenly chosen over depth and size.`
      : `${plural(all, 'curve')}.`;
  const training = model.study.curves.some((curve) => curve.training.length > 0);
  return training
    ? `${count} Lines: training loss, averaged over steps; dots: held-out loss.`
    : `${count} Loss is what the run recorded along training.`;
}

/// Every curve when there are few; else every k-th after sorting by depth and size.
function select(model: Model): Line[] {
  const lines: Line[] = [];
  for (const curve of model.study.curves) {
    const run = model.by_id.get(curve.id);
    if (run)
      lines.push({
        run,
        held_out: thin(curve.points),
        training: thin(curve.training),
        colour: depth_colour(model.depths.indexOf(run.layers)),
      });
  }
  lines.sort((a, b) => a.run.layers - b.run.layers || (a.run.params ?? 0) - (b.run.params ?? 0));
  if (lines.length <= kMostCurves) return lines;
  const step = lines.length / kMostCurves;
  return Array.from({ length: kMostCurves }, (_, i) => lines[Math.floor(i * step)]!);
}

function thin(points: Points): Points {
  const count = points.length;
  if (count <= kMostPoints) return points;
  return Array.from(
    { length: kMostPoints },
    (_, i) => points[Math.round((i * (count - 1)) / (kMostPoints - 1))]!,
  );
}

function make_content(lines: Line[], store: Store): Content {
  const shown = lines.filter((line) => store.shown(line.run.layers));
  const points = lines.flatMap((line) => [...line.training, ...line.held_out]);
  const losses = points.map((point) => point[1]).sort((a, b) => a - b);
  // The first steps are far above the rest: the axis ends where 98 % of the points do.
  const top = losses[Math.floor(0.98 * (losses.length - 1))] ?? 1;
  const thickness = shown.length > 80 ? 1 : 1.6;
  const content: Content = {
    x: {
      label: 'tokens seen',
      scale: 'log',
      domain: padded(
        points.map((point) => point[0]),
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
      header: ['id', 'layers', 'width', 'seed', 'kind', 'tokens', 'loss'],
      rows: lines.flatMap((line) => [
        ...csv_rows(line.run, 'training', line.training),
        ...csv_rows(line.run, 'held out', line.held_out),
      ]),
    },
    draw: (view) => {
      for (const line of shown) {
        view.inside.append(
          s(
            'g',
            { class: 'series', 'data-depth': line.run.layers },
            draw_line(view, line, thickness, 'stroke-opacity:.75'),
            line.training.length > 0 ? dots(pixels(view, line.held_out), line.colour, 4.5) : null,
          ),
        );
      }
    },
  };
  if (lines.length === 0) content.empty = 'The document holds no training curves.';
  return content;
}

const csv_rows = (run: Run, kind: string, points: Points) =>
  points.map(([tokens, loss]) => [run.id, run.layers, run.width, run.seed, kind, tokens, loss]);

const pixels = (view: View, points: Points): Points =>
  points.map((p): [number, number] => [view.x(p[0]), view.y(p[1])]);

function draw_line(view: View, line: Line, width: number, extra: string): SVGPathElement {
  return polyline(pixels(view, course(line)), line.colour, width, extra);
}

function targets(line: Line): Target[] {
  const { run } = line;
  const of = (points: Points, kind: string) =>
    points.map(([tokens, loss]) => ({
      x: tokens,
      y: loss,
      colour: line.colour,
      title: `${layers(run.layers)} × ${run.width ?? '?'} wide, seed ${run.seed || '?'}`,
      lines: [
        ['tokens', si(tokens)],
        [kind, fixed(loss, 4)],
        ['run', run.id.slice(0, 12)],
      ] as [string, string][],
      highlight: (view: View) => draw_line(view, line, 3, ''),
    }));
  return [...of(line.training, 'training loss'), ...of(line.held_out, 'held-out loss')];
}
