// What an experiment shows: tables, and charts of one or more lines with their intervals.
import type { Chart, Point, Series, Table } from '../generated/lab_schema';
import { padded, type AxisSpec } from '../charts/axes';
import { band, dots, polyline } from '../charts/marks';
import { Plot, type Content, type View } from '../charts/plot';
import { h, s } from '../dom';

/// 3.4, 1.2e-10, 121,124: short, and the same digits in charts and criteria.
export function number_text(value: number, digits = 5): string {
  const size = Math.abs(value);
  const text =
    value !== 0 && (size >= 1e7 || size < 1e-3)
      ? value.toExponential(2).replace('e+', 'e').replace(/\.?0+e/, 'e')
      : Number(value.toPrecision(digits)).toLocaleString('en-US', { maximumFractionDigits: 6 });
  return text.replace('-', '−').replace('e-', 'e−');
}

const kNumber = /^(at least |> |< )?[-−+]?[\d.,]+(e[-+]?\d+)?( ?%)?$/;

/// In place of a number.
const kNoNumber = ['', '-', '-inf', '?', 'vacuous', 'more'];

/// A column whose cells are numbers, or absent, is set flush right.
function numeric_columns(table: Table): boolean[] {
  return table.columns.map((_, column) => {
    const cells = table.rows
      .map((row) => row[column] ?? '')
      .filter((cell) => !kNoNumber.includes(cell));
    return cells.length > 0 && cells.every((cell) => kNumber.test(cell));
  });
}

export function exhibit_table(table: Table): HTMLElement {
  const numeric = numeric_columns(table);
  const cell = (tag: 'th' | 'td', text: string, column: number) =>
    h(tag, { class: numeric[column] ? 'number' : '', scope: tag === 'th' ? 'col' : null }, text);
  return h(
    'div',
    { class: 'table-scroll', tabindex: 0, role: 'region', 'aria-label': table.title },
    h(
      'table',
      { class: 'exhibit' },
      h('caption', {}, table.title),
      h('thead', {}, h('tr', {}, ...table.columns.map((name, i) => cell('th', name, i)))),
      h(
        'tbody',
        {},
        ...table.rows.map((row) => h('tr', {}, ...row.map((text, i) => cell('td', text, i)))),
      ),
    ),
  );
}

const kColours = 8;
const colour_of = (index: number): string => `var(--series-${index % kColours})`;

type Dot = Point & { y: number };

/// Points that can be drawn: finite, and above zero on logarithmic axes.
function drawable(chart: Chart, series: Series): Dot[] {
  return series.points.filter(
    (point): point is Dot =>
      point.y !== null && !(chart.log_x && point.x <= 0) && !(chart.log_y && point.y <= 0),
  );
}

export function line_chart(chart: Chart, id: string): Plot {
  const hidden = new Set<number>();
  const names = chart.series.map((series) => series.name).join('; ');
  const plot: Plot = new Plot({
    id,
    title: chart.title,
    describe: `${chart.y} against ${chart.x}: ${names}.`,
    height: 340,
    label_room: 16,
    content: () => make_content(chart, hidden),
  });
  if (chart.series.length > 1) {
    const chips = legend(chart, hidden, () => plot.update());
    plot.figure.querySelector('.stage')!.before(chips);
  }
  return plot;
}

function legend(chart: Chart, hidden: Set<number>, changed: () => void): HTMLElement {
  const chips = chart.series.map((series, index) => {
    const chip = h(
      'button',
      {
        type: 'button',
        class: 'chip',
        style: `--mark:${colour_of(index)}`,
        'aria-pressed': 'true',
        title: `Show or hide ${series.name}`,
      },
      series.name,
    );
    chip.addEventListener('click', () => {
      if (!hidden.delete(index)) hidden.add(index);
      chip.setAttribute('aria-pressed', String(!hidden.has(index)));
      changed();
    });
    return chip;
  });
  return h('div', { class: 'legend', role: 'group', 'aria-label': `Lines: ${chart.title}` }, ...chips);
}

const kMostTicks = 16;

function axis(label: string, log: boolean, values: number[], ticks: number[]): AxisSpec {
  const scale = log ? 'log' : 'linear';
  const spec: AxisSpec = {
    label,
    scale,
    domain: padded(values, scale, 0.04),
    format: (value) => number_text(value),
  };
  if (ticks.length > 0 && ticks.length <= kMostTicks) spec.values = ticks;
  return spec;
}

function make_content(chart: Chart, hidden: Set<number>): Content {
  const lines = chart.series.map((series) => drawable(chart, series));
  const shown = lines.filter((_, index) => !hidden.has(index));
  const all = shown.flat();
  const places = [...new Set(lines.flat().map((dot) => dot.x))].sort((a, b) => a - b);
  const ends = (dot: Dot) =>
    [dot.y, dot.low ?? dot.y, dot.high ?? dot.y].filter((value) => !chart.log_y || value > 0);
  const content: Content = {
    x: axis(chart.x, chart.log_x, places, places),
    y: axis(chart.y, chart.log_y, all.flatMap(ends), []),
    draw: (view) =>
      lines.forEach((line, index) => {
        if (!hidden.has(index)) draw_line(view, chart, line, index);
      }),
    targets: lines.flatMap((line, index) =>
      hidden.has(index) ? [] : line.map((dot) => target(chart, dot, index)),
    ),
    table: {
      header: ['series', chart.x, chart.y, 'low', 'high'],
      rows: chart.series.flatMap((series) =>
        series.points.map((point) => [series.name, point.x, point.y, point.low, point.high]),
      ),
    },
  };
  if (all.length === 0) content.empty = 'No line is shown.';
  return content;
}

function target(chart: Chart, dot: Dot, index: number) {
  const lines: [string, string][] = [
    [chart.x, number_text(dot.x)],
    [chart.y, number_text(dot.y)],
  ];
  if (dot.low !== null && dot.high !== null)
    lines.push(['interval', `${number_text(dot.low)} to ${number_text(dot.high)}`]);
  return {
    x: dot.x,
    y: dot.y,
    colour: colour_of(index),
    title: chart.series[index]!.name,
    lines,
  };
}

function draw_line(view: View, chart: Chart, line: Dot[], index: number): void {
  const colour = colour_of(index);
  const ranged = line.flatMap((dot): [number, number, number][] =>
    dot.low === null || dot.high === null || (chart.log_y && dot.low <= 0)
      ? []
      : [[view.x(dot.x), view.y(dot.low), view.y(dot.high)]],
  );
  const at = line.map((dot): [number, number] => [view.x(dot.x), view.y(dot.y)]);
  view.inside.append(
    s(
      'g',
      { class: 'series', 'data-series': index },
      ranged.length > 1 ? band(ranged, colour, 0.14) : null,
      polyline(at, colour, 1.8),
      dots(at, colour, 6),
    ),
  );
}
