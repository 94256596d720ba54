// Loss against size N, one line per depth: the mean over seeds with the band from least to greatest
// seed. Crossings, where the deeper network starts to win, are rings with their interval.
import type { Transition } from '../document';
import { s } from '../dom';
import { fixed, layers, percent, si, whole } from '../format';
import { cells_by_depth, excess_cells, value_at, type Cell, type Model } from '../model';
import { depth_colour } from '../palette';
import type { Store } from '../store';
import { padded } from './axes';
import { choice } from './choice';
import { band, dots, label, LabelRoom, polyline, spread, type EndLabel } from './marks';
import { Plot, type Content, type View } from './plot';

type Mode = 'loss' | 'bits_per_byte' | 'excess';
const kMostShaded = 3;

const kAxis: Record<Mode, { label: string; format: (value: number) => string }> = {
  loss: { label: 'held-out loss, nats per token', format: (v) => fixed(v, 2) },
  bits_per_byte: { label: 'held-out bits per byte', format: (v) => fixed(v, 2) },
  excess: { label: 'loss above the best depth of equal size, %', format: (v) => fixed(100 * v, 1) },
};

export function loss_by_size(model: Model, store: Store): Plot {
  let mode: Mode = 'loss';
  const modes: [Mode, string][] = [['loss', 'Nats per token']];
  if (model.finished.some((run) => run.bits_per_byte !== null)) {
    modes.push(['bits_per_byte', 'Bits per byte']);
  }
  const plot: Plot = new Plot({
    id: 'loss-by-size',
    title: 'Loss against size, by depth',
    describe: 'One line for each depth. Where two lines cross, the deeper network starts to win.',
    height: 440,
    label_room: 84,
    content: () => make_content(model, store, mode),
    controls: [
      choice('What is drawn', modes, (chosen) => {
        mode = chosen;
        plot.update(true);
      }),
    ],
    note:
      'Lines: mean over seeds; bands: least to greatest seed. Rings: size at which the deeper ' +
      'network starts to win, with its 95 % interval. N counts parameters as the study does.',
  });
  return plot;
}

/// The same losses as distance from the best depth of equal size, which makes small gaps visible.
export function excess_by_size(model: Model, store: Store): Plot {
  return new Plot({
    id: 'excess-by-size',
    title: 'The same, as distance from the best depth of equal size',
    describe: 'Percent by which each depth is worse than the best depth at the same size.',
    height: 360,
    label_room: 84,
    content: () => make_content(model, store, 'excess'),
    note:
      'Zero: no depth does better at this size. Other depths are interpolated in ln N between ' +
      'their own sizes, never beyond them; a hollow dot has a size that no other depth was trained ' +
      'at. The axis ends above nine tenths of the points; press − to see all.',
  });
}

function make_content(model: Model, store: Store, mode: Mode): Content {
  const raw = cells_by_depth(model, mode === 'bits_per_byte' ? mode : 'loss');
  const all = mode === 'excess' ? excess_cells(raw, true) : raw;
  const every = [...all.values()].flat();
  const shown = model.depths.filter((depth) => all.has(depth) && store.shown(depth));
  const axis = kAxis[mode];
  const crossings = model.study.transitions.filter(
    (t) =>
      t.status === 'crossing' && t.params !== null && store.shown(t.shallow) && store.shown(t.deep),
  );
  const content: Content = {
    x: {
      label: 'parameters N',
      scale: 'log',
      domain: padded(
        [...raw.values()].flat().map((cell) => cell.params),
        'log',
        0.04,
      ),
      format: si,
    },
    y: {
      label: axis.label,
      scale: 'linear',
      domain:
        mode === 'excess'
          ? excess_domain(every)
          : padded(
              every.flatMap((cell) => [cell.low, cell.high]),
              'linear',
            ),
      format: axis.format,
    },
    targets: shown.flatMap((depth) => all.get(depth)!.map((cell) => target(model, cell, mode))),
    table: csv(all, mode),
    draw: (view) => {
      for (const depth of shown) draw_depth(view, model, depth, all.get(depth)!);
      const room = new LabelRoom();
      // Many overlapping shaded intervals blur into one; then only their bars are drawn.
      const shaded = crossings.length <= kMostShaded;
      for (const crossing of crossings) draw_crossing(view, all, crossing, room, shaded);
      if (!view.narrow) draw_end_labels(view, model, shown, all);
    },
  };
  if (every.length === 0) {
    content.empty =
      model.finished.length === 0
        ? 'No run has finished with a loss yet.'
        : 'No two depths were trained at comparable sizes.';
  }
  return content;
}

/// A few hopeless shapes must not flatten the rest.
function excess_domain(cells: Cell[]): [number, number] {
  const values = cells.map((cell) => cell.value).sort((a, b) => a - b);
  const top = values[Math.floor(0.9 * (values.length - 1))] ?? 0;
  return padded([0, Math.max(top, 0.001)], 'linear', 0.08);
}

function target(model: Model, cell: Cell, mode: Mode) {
  const show = (value: number) => (mode === 'excess' ? percent(value) : fixed(value, 4));
  const lines: [string, string][] = [
    ['parameters', whole(cell.params)],
    cell.alone
      ? ['compared with', 'no other depth of this size']
      : [mode === 'bits_per_byte' ? 'bits per byte' : mode, show(cell.value)],
  ];
  if (cell.runs.length > 1 && !cell.alone) {
    lines.push([`${cell.runs.length} seeds`, `${show(cell.low)} to ${show(cell.high)}`]);
  }
  lines.push(['tokens', si(cell.runs[0]!.tokens)]);
  return {
    x: cell.params,
    y: cell.value,
    colour: depth_colour(model.depths.indexOf(cell.layers)),
    title: `${layers(cell.layers)} × ${cell.width ?? '?'} wide`,
    lines,
  };
}

function draw_depth(view: View, model: Model, depth: number, cells: Cell[]): void {
  const colour = depth_colour(model.depths.indexOf(depth));
  const points = cells.map((cell): [number, number] => [view.x(cell.params), view.y(cell.value)]);
  const g = s('g', { class: 'series', 'data-depth': depth });
  if (cells.some((cell) => cell.high > cell.low)) {
    g.append(
      band(
        cells.map((cell) => [view.x(cell.params), view.y(cell.low), view.y(cell.high)]),
        colour,
        0.16,
      ),
    );
  }
  const size = cells.length > 60 ? 4 : 6.5;
  const of = (alone: boolean) => points.filter((_, i) => Boolean(cells[i]!.alone) === alone);
  g.append(polyline(of(false), colour, 2), dots(points, colour, size));
  if (cells.some((cell) => cell.alone)) g.append(dots(of(true), 'var(--paper)', size - 3));
  view.inside.append(g);
}

function draw_crossing(
  view: View,
  all: Map<number, Cell[]>,
  crossing: Transition,
  room: LabelRoom,
  shaded: boolean,
): void {
  const params = crossing.params!;
  const deep = value_at(all.get(crossing.deep) ?? [], params);
  const shallow = value_at(all.get(crossing.shallow) ?? [], params);
  if (deep === null && shallow === null) return;
  const x = view.x(params);
  const y = view.y(deep !== null && shallow !== null ? (deep + shallow) / 2 : (deep ?? shallow)!);
  const g = s('g', { class: 'crossing' });
  if (crossing.low !== null && crossing.high !== null) {
    const [from, to] = [view.x(crossing.low), view.x(crossing.high)];
    if (shaded) {
      g.append(
        s('rect', {
          x: from,
          width: Math.max(1, to - from),
          y: view.area.top,
          height: view.area.bottom - view.area.top,
          style: 'fill:var(--ink);fill-opacity:0.045',
        }),
      );
    }
    g.append(
      s('line', { x1: from, x2: to, y1: y, y2: y, style: 'stroke:var(--ink);stroke-width:1.5' }),
    );
  }
  g.append(
    s('circle', {
      cx: x,
      cy: y,
      r: 5.5,
      style: 'fill:var(--paper);stroke:var(--ink);stroke-width:1.8',
    }),
    s('line', {
      x1: x,
      x2: x,
      y1: view.area.top + 18,
      y2: y - 6,
      style: 'stroke:var(--ink);stroke-width:1;stroke-dasharray:2 3;stroke-opacity:.55',
    }),
  );
  const name = `${crossing.shallow} → ${crossing.deep}`;
  const top = view.area.top + 12;
  if (room.take(x - name.length * 3.6, top, name)) {
    g.append(label(x, top, name, 'var(--ink)', 'middle'));
  }
  view.inside.append(g);
}

function draw_end_labels(
  view: View,
  model: Model,
  shown: number[],
  all: Map<number, Cell[]>,
): void {
  const ends: EndLabel[] = [];
  for (const depth of shown) {
    const inside = all.get(depth)!.filter((cell) => {
      const x = view.x(cell.params);
      const y = view.y(cell.value);
      return x <= view.area.right + 1 && y >= view.area.top - 1 && y <= view.area.bottom + 1;
    });
    const last = inside[inside.length - 1];
    if (!last) continue;
    ends.push({
      y: view.y(last.value) + 4,
      text: layers(depth),
      colour: depth_colour(model.depths.indexOf(depth)),
    });
  }
  if (ends.length > 16) return;
  for (const end of spread(ends, 15, view.area.top + 4, view.area.bottom + 4)) {
    view.over.append(label(view.area.right + 10, end.y, end.text, end.colour));
  }
}

function csv(all: Map<number, Cell[]>, mode: Mode) {
  return {
    header: ['layers', 'width', 'params', 'tokens', 'seeds', mode, 'lowest', 'highest'],
    rows: [...all.values()]
      .flat()
      .map((c) => [
        c.layers,
        c.width,
        c.params,
        c.runs[0]!.tokens,
        c.runs.length,
        ...(c.alone ? [null, null, null] : [c.value, c.low, c.high]),
      ]),
  };
}
