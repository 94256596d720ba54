// The map of loss over depth and width: one row per depth, one tile per trained width, coloured by the
// mean over seeds (viridis; dark is low). Lines: the width from which each depth pays.
import type { Law } from '../document';
import { s } from '../dom';
import { fixed, layers, percent, si, whole } from '../format';
import { cells_by_depth, excess_cells, type Cell, type Model } from '../model';
import { ink_on_ramp, ramp } from '../palette';
import type { Store } from '../store';
import { padded } from './axes';
import { choice } from './choice';
import { label, polyline } from './marks';
import { Plot, type Content, type View } from './plot';
import { law_width } from './transition_widths';

type Mode = 'loss' | 'excess';

export function depth_width_map(model: Model, store: Store): Plot {
  let mode: Mode = 'loss';
  const rows = model.depths.length;
  const plot: Plot = new Plot({
    id: 'depth-width-map',
    title: 'The map of loss over depth and width',
    describe: 'Tiles in rows of equal depth, coloured by loss; darker is lower.',
    height: Math.min(620, Math.max(260, 110 + rows * 46)),
    label_room: 20,
    content: () => make_content(model, store, mode),
    controls: [
      choice<Mode>(
        'What is coloured',
        [
          ['loss', 'Loss'],
          ['excess', 'Above best'],
        ],
        (chosen) => {
          mode = chosen;
          plot.update();
        },
      ),
    ],
    note:
      'Colour: mean over seeds, dark is low. “Above best” compares with the best depth of ' +
      'equal size. Lines: the width from which each depth pays, by this study (solid) and ' +
      'published (dashed).',
  });
  return plot;
}

function make_content(model: Model, store: Store, mode: Mode): Content {
  const raw = cells_by_depth(model, 'loss');
  const all = mode === 'excess' ? excess_cells(raw) : raw;
  const depths = model.depths.filter((depth) => all.has(depth));
  const rows = depths.filter((depth) => store.shown(depth));
  const cells = rows.flatMap((depth) => all.get(depth)!.filter((cell) => cell.width !== null));
  const values = cells.map((cell) => cell.value).sort((a, b) => a - b);
  const least = values[0] ?? 0;
  const most = values[Math.floor(0.97 * (values.length - 1))] ?? 1;
  const share = (value: number) => (most > least ? (value - least) / (most - least) : 0.3);
  const row = (depth: number) => rows.indexOf(depth);
  const format = mode === 'excess' ? (v: number) => percent(v, 1) : (v: number) => fixed(v, 2);
  const content: Content = {
    x: {
      label: 'width d',
      scale: 'log',
      domain: padded(
        cells.map((cell) => cell.width!),
        'log',
        0.07,
      ),
      format: si,
    },
    y: {
      label: 'depth, layers',
      scale: 'linear',
      domain: [-0.6, Math.max(0.6, rows.length - 0.4)],
      values: rows.map((_, index) => index),
      format: (index) => String(rows[Math.round(index)] ?? ''),
    },
    targets: cells.map((cell) => ({
      x: cell.width!,
      y: row(cell.layers),
      colour: 'var(--ink)',
      title: `${layers(cell.layers)} × ${whole(cell.width)} wide`,
      lines: [
        [
          mode === 'excess' ? 'above best' : 'loss',
          mode === 'excess' ? percent(cell.value) : fixed(cell.value, 4),
        ],
        ['parameters', whole(cell.params)],
        ['seeds', String(cell.runs.length)],
      ],
    })),
    table: {
      header: ['layers', 'width', 'params', 'seeds', mode],
      rows: cells.map((c) => [c.layers, c.width, c.params, c.runs.length, c.value]),
    },
    draw: (view) => {
      const labels = s('g', { class: 'tile-labels' });
      for (const depth of rows) draw_row(view, labels, all.get(depth)!, row(depth), share, format);
      const { law, published } = model.study;
      if (published) draw_law(view, published, rows, '5 4');
      if (law) draw_law(view, law, rows, '');
      view.inside.append(labels);
      draw_key(
        view,
        format(least),
        `${most < (values[values.length - 1] ?? 0) ? '≥ ' : ''}${format(most)}`,
      );
    },
  };
  if (cells.length === 0) content.empty = 'No finished run with a width to map.';
  return content;
}

/// Tiles reach halfway (in ln d) to their neighbours, at most a quarter octave. Their labels lie over
/// everything, with a halo of the tile's colour where a line would cross them.
function draw_row(
  view: View,
  labels: SVGGElement,
  all: Cell[],
  row: number,
  share: (value: number) => number,
  format: (value: number) => string,
): void {
  const cells = all.filter((cell) => cell.width !== null).sort((a, b) => a.width! - b.width!);
  const top = view.y(row + 0.44);
  const height = view.y(row - 0.44) - top;
  const g = s('g', { class: 'tiles' });
  cells.forEach((cell, i) => {
    const reach = (other: Cell | undefined) =>
      Math.min(
        Math.log(2) / 4,
        other ? Math.abs(Math.log(other.width! / cell.width!)) / 2 : Infinity,
      );
    const left = view.x(cell.width! * Math.exp(-reach(cells[i - 1])));
    const right = view.x(cell.width! * Math.exp(reach(cells[i + 1])));
    const fill = ramp(share(cell.value));
    const width = Math.max(2, right - left - 1.5);
    g.append(
      s('rect', {
        x: left.toFixed(1),
        y: top.toFixed(1),
        width: width.toFixed(1),
        height: height.toFixed(1),
        rx: Math.min(3, width / 4),
        style: `fill:${fill}`,
      }),
    );
    if (width < 36 || height < 18) return;
    labels.append(
      s(
        'text',
        {
          x: (left + width / 2).toFixed(1),
          y: (top + height / 2 + 4).toFixed(1),
          'text-anchor': 'middle',
          style:
            `fill:${ink_on_ramp(share(cell.value))};font-size:11.5px;paint-order:stroke;` +
            `stroke:${fill};stroke-width:6px;stroke-linejoin:round`,
        },
        format(cell.value),
      ),
    );
  });
  view.inside.append(g);
}

function draw_law(view: View, law: Law, rows: number[], dash: string): void {
  const points = rows.map((depth, row): [number, number] => [
    view.x(law_width(law, depth)),
    view.y(row),
  ]);
  const style = dash ? `stroke-dasharray:${dash};` : '';
  view.inside.append(
    polyline(points, 'var(--paper)', 5, 'stroke-opacity:.75'),
    polyline(points, 'var(--ink)', 2, style),
  );
}

function draw_key(view: View, least: string, most: string): void {
  const width = view.narrow ? 70 : 120;
  const left = view.area.right - width - 56;
  const steps = 24;
  for (let i = 0; i < steps; ++i) {
    view.over.append(
      s('rect', {
        x: left + (i * width) / steps,
        y: 4,
        width: width / steps + 0.6,
        height: 9,
        style: `fill:${ramp((i + 0.5) / steps)}`,
      }),
    );
  }
  view.over.append(
    label(left - 6, 13, least, 'var(--ink-soft)', 'end'),
    label(left + width + 6, 13, most, 'var(--ink-soft)'),
  );
}
