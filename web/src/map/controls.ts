// The sliders for budget and tokens, and the switches for what is counted and coloured.
import { choice } from '../charts/choice';
import { h } from '../dom';
import { flops, si } from '../format';
import type { Colouring, Count, MapState } from './state';

interface SliderSpec {
  id: string;
  name: () => string;
  stops: () => number[];
  at: () => number;
  set: (index: number) => void;
  text: () => string;
}

function slider(state: MapState, spec: SliderSpec): HTMLElement {
  const name = h('span', { class: 'slider-name' });
  const value = h('output', { class: 'slider-value', for: spec.id });
  const input = h('input', { id: spec.id, type: 'range', min: 0, step: 1 });
  const refresh = () => {
    input.max = String(spec.stops().length - 1);
    input.value = String(spec.at());
    name.textContent = spec.name();
    value.textContent = spec.text();
    input.setAttribute('aria-valuetext', spec.text());
    const share = spec.at() / Math.max(1, spec.stops().length - 1);
    input.style.setProperty('--share', `${(100 * share).toFixed(1)}%`);
  };
  input.addEventListener('input', () => {
    spec.set(Number(input.value));
    state.notify();
  });
  state.listen(refresh);
  refresh();
  return h('label', { class: 'slider', for: spec.id }, name, value, input);
}

export function controls(state: MapState): HTMLElement {
  const budget = slider(state, {
    id: 'budget',
    name: () => (state.count === 'flops' ? 'Training FLOPs' : 'Parameters'),
    stops: () => state.table.stops,
    at: () => state.budget,
    set: (index) => (state.budget = index),
    text: () => {
      const stop = state.table.stops[state.budget]!;
      return state.count === 'flops' ? flops(stop) : si(stop);
    },
  });
  const tokens = slider(state, {
    id: 'tokens',
    name: () => 'Tokens per parameter',
    stops: () => state.map.tokens_per_parameter,
    at: () => state.tokens,
    set: (index) => (state.tokens = index),
    text: () => {
      const plan = state.plan;
      const total = plan ? ` · ${si(plan.tokens)} tokens` : '';
      return `${si(state.map.tokens_per_parameter[state.tokens]!)}${total}`;
    },
  });
  const count = choice<Count>('What the budget is', kCounts, (chosen) =>
    state.switch_count(chosen),
  );
  for (const button of count.querySelectorAll('button')) {
    button.setAttribute('aria-pressed', String(button.dataset.value === state.count));
  }
  return h('div', { class: 'controls' }, count, budget, tokens);
}

const kCounts: [Count, string][] = [
  ['parameters', 'Parameters'],
  ['flops', 'FLOPs'],
];

/// What the plane is coloured by, and for which hardware.
export function colour_controls(state: MapState): HTMLElement[] {
  const select = h(
    'select',
    { id: 'hardware', 'aria-label': 'Hardware of the modelled times' },
    ...state.map.hardware.map((device, i) =>
      h('option', { value: i, selected: i === state.device }, device.title),
    ),
  );
  select.addEventListener('change', () => {
    state.device = Number(select.value);
    state.notify();
  });
  const colouring = choice<Colouring>(
    'What the plane is coloured by',
    [
      ['none', 'Plain'],
      ['train', 'Training time'],
      ['decode', 'Decode latency'],
    ],
    (chosen) => {
      state.colouring = chosen;
      state.notify();
    },
  );
  return [colouring, select];
}
