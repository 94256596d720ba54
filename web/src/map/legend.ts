// One chip per law: its colour, and whether its curve is drawn.
import { h } from '../dom';
import { law_colours } from './laws';
import type { MapState } from './state';

export function law_legend(state: MapState): HTMLElement {
  const colours = law_colours(state.map);
  const chips = state.map.laws.map((law, i) => {
    const chip = h(
      'button',
      {
        type: 'button',
        class: 'chip',
        style: `--mark:${colours[i]}`,
        title: `${law.claim} (${law.source})`,
      },
      law.title,
    );
    const refresh = () => chip.setAttribute('aria-pressed', String(state.law_shown(i)));
    chip.addEventListener('click', () => state.toggle_law(i));
    state.listen(refresh);
    refresh();
    return chip;
  });
  return h(
    'div',
    { class: 'legend', role: 'group', 'aria-label': 'Laws that are drawn' },
    h('span', { class: 'legend-title' }, 'Laws'),
    ...chips,
  );
}
