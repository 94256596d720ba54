// The map's numbers as tables, for paper and for readers who cannot see the chart.
import { h } from '../dom';
import { percent, si, whole } from '../format';
import { simple_table } from '../page/transition_tables';
import { law_mark, type Mark } from './laws';
import { width_at, type MapState } from './state';

type Row = (string | HTMLElement)[];

function table(caption: string, header: string[], rows: Row[]): HTMLElement {
  const cells = (row: Row) =>
    row.map((cell, i) =>
      i === 0
        ? h('th', { scope: 'row' }, cell)
        : h('td', { class: i < row.length - 1 ? 'number' : null }, cell),
    );
  return simple_table(
    caption,
    header,
    rows.map((row) => h('tr', {}, ...cells(row))),
  );
}

const mark_cell = (mark: Mark): HTMLElement => h('span', { class: 'mark', 'data-mark': mark }, mark);

export function live_tables(state: MapState): HTMLElement {
  const place = h('div', { class: 'side-tables' });
  const refresh = () => {
    const { map, plan } = state;
    if (!plan) return place.replaceChildren();
    const laws = map.laws.map((law, i): Row => {
      const layers = plan.laws[i]!;
      return [
        law.title,
        layers.toFixed(1),
        whole(width_at(map, plan, layers)),
        mark_cell(law_mark(plan, i)),
      ];
    });
    laws.push([
      'The laws together',
      plan.optimum.toFixed(1),
      whole(width_at(map, plan, plan.optimum)),
      mark_cell(plan.evidence as Mark),
    ]);
    const near = state
      .neighbours(9)
      .map((model) => [
        model.name,
        String(model.year ?? '–'),
        `${model.layers} × ${whole(model.width)}`,
        si(model.total),
        model.laws_layers.toFixed(0),
        percent(model.penalty),
      ]);
    place.replaceChildren(
      table('Best depth at this budget', ['Law', 'Layers', 'Width', 'Mark'], laws),
      near.length > 0
        ? table('Published models of this size', ['Model', 'Year', 'Shape', 'Size', 'Laws', 'Loss'], near)
        : h('p', { class: 'quiet' }, 'No published dense model has about this size.'),
    );
  };
  state.listen(refresh);
  refresh();
  return place;
}
