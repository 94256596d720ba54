// Which depths are shown: one toggle per depth, for all charts at once.
import { h } from '../dom';
import { layers } from '../format';
import { depth_colour } from '../palette';
import type { Store } from '../store';

export function depth_legend(store: Store): HTMLElement {
  const all = h('button', { type: 'button', class: 'show-all' }, 'Show all');
  all.addEventListener('click', () => store.show_all());
  const chips = store.depths.map((depth, index) => {
    const chip = h(
      'button',
      {
        type: 'button',
        class: 'chip',
        'data-depth': depth,
        style: `--mark:${depth_colour(index)}`,
        title: `Show or hide ${layers(depth)}; double click shows them alone`,
      },
      String(depth),
    );
    chip.addEventListener('click', () => store.toggle(depth));
    chip.addEventListener('dblclick', () => store.solo(depth));
    return chip;
  });
  const refresh = () => {
    store.depths.forEach((depth, index) => {
      chips[index]!.setAttribute('aria-pressed', String(store.shown(depth)));
    });
    all.hidden = !store.any_hidden;
  };
  store.listen(refresh);
  refresh();
  return h(
    'div',
    { class: 'legend', role: 'group', 'aria-label': 'Depths shown in all charts' },
    h('span', { class: 'legend-title' }, 'Layers'),
    ...chips,
    all,
  );
}
