// The planner's answer at the sliders' stop: what to take, what else is as good, what it costs.
import { h } from '../dom';
import { fixed, flops, percent, plural, whole } from '../format';
import type { MapDocument, StopPlan } from '../generated/map_schema';
import type { MapState } from './state';

/// 7 or more digits as people type them: 7000000000 -> 7B; what is not round stays as it is.
export function typed(value: number): string {
  for (const [unit, letter] of kUnits) {
    const scaled = Number((value / unit).toPrecision(12));
    if (value >= unit && String(scaled).length <= 5) return `${scaled}${letter}`;
  }
  return String(value);
}

const kUnits: [number, string][] = [
  [1e12, 'T'],
  [1e9, 'B'],
  [1e6, 'M'],
  [1e3, 'K'],
];

/// The words after 'fathom plan' that ask for these very numbers.
export function typed_words(state: MapState): string {
  const { map } = state;
  const stop = state.table.stops[state.budget]!;
  const size = state.count === 'flops' ? `--flops ${stop}` : typed(stop);
  const ratio = map.tokens_per_parameter[state.tokens]!;
  const tokens = ratio === 20 ? '' : ` --tokens-per-parameter ${ratio}`;
  const options = map.options ? ` ${map.options}` : '';
  return `${size}${tokens}${options} --hardware ${map.hardware[state.device]!.name}`;
}

const take = (plan: StopPlan): string => {
  const [layers, width, heads, kv_heads, head_size, ffn] = plan.pick as Six;
  const grouped = kv_heads === heads ? '' : ` (${kv_heads} kv)`;
  return (
    `Take ${plural(layers, 'layer')} × ${whole(width)} wide: ${plural(heads, 'head')} of ` +
    `${head_size}${grouped}, ffn ${whole(ffn)}.`
  );
};

export type Six = [number, number, number, number, number, number];

function as_good(map: MapDocument, plan: StopPlan): string {
  const [low, high] = plan.equals as [number, number];
  const within = `${Number((100 * map.tolerance).toPrecision(2))} %`;
  const layers = plan.pick[0]!;
  if (layers < low || layers > high)
    return `The constraints cost ${percent(plan.penalty)} loss (${plan.equals_evidence}).`;
  if (low === high) return `No other depth stays within ${within} of its loss.`;
  return `${low} to ${high} layers are as good: the loss stays within ${within} of the best (${plan.equals_evidence}).`;
}

/// Three digits and the unit that suits them.
function gpu_parts(seconds: number): [string, string] {
  const hours = seconds / 3600;
  const three = (value: number) => whole_or_less(Number(value.toPrecision(3)));
  if (hours < 1) return [three(60 * hours), 'GPU-minutes'];
  return hours < 1e5 ? [three(hours), 'GPU-hours'] : [three(hours / 8766), 'GPU-years'];
}

const whole_or_less = (value: number): string => (value < 100 ? String(value) : whole(value));

export const gpu_time = (seconds: number): string => gpu_parts(seconds).join(' ');

export const latency = (seconds: number): string =>
  seconds < 1e-3 ? `${fixed(1e6 * seconds, 0)} µs` : `${Number((1e3 * seconds).toPrecision(3))} ms`;

function facts(state: MapState, plan: StopPlan): [string, string, string, string][] {
  const device = state.map.hardware[state.device]!.title;
  const [time, unit] = gpu_parts(plan.train_seconds[state.device]!);
  return [
    ['shape', `${plan.pick[0]} × ${whole(plan.pick[1]!)}`, 'layers × width', plan.evidence],
    ['counted', whole(plan.counted), 'parameters of this shape', 'exact'],
    ['flops', flops(plan.flops), 'training FLOPs', 'exact'],
    ['train', time, `${unit} to train`, `modelled, ${device}`],
    ['decode', latency(plan.decode_seconds[state.device]!), 'per decoded token', `modelled, ${device}`],
  ];
}

/// The live text; screen readers hear it after a slider stops. It keeps its height, so that the
/// sliders below stay under the pointer.
export function answer(state: MapState): HTMLElement {
  const text = h('div', { class: 'answer', 'aria-live': 'polite', 'aria-atomic': 'true' });
  const refresh = () => {
    const plan = state.plan;
    const sentences = plan
      ? [take(plan), as_good(state.map, plan)]
      : [state.waiting ? 'Planning …' : 'No shape of this budget keeps the constraints.'];
    text.replaceChildren(
      ...sentences.map((sentence, i) => h('p', { class: i === 0 ? 'lead' : null }, sentence)),
    );
  };
  state.listen(refresh);
  refresh();
  return text;
}

/// The counts and costs of the pick, and the command that prints them too.
export function costs(state: MapState): HTMLElement {
  const numbers = h('dl', { class: 'facts' });
  const typed_command = h('code', {});
  const refresh = () => {
    const plan = state.plan;
    typed_command.textContent = `fathom plan ${typed_words(state)}`;
    numbers.replaceChildren(
      ...(plan ? facts(state, plan) : []).map(([key, value, name, note]) =>
        h(
          'div',
          {},
          h('dt', {}, name),
          h('dd', { 'data-fact': key }, value),
          h('dd', { class: 'more' }, note),
        ),
      ),
    );
  };
  state.listen(refresh);
  refresh();
  return h(
    'div',
    {},
    numbers,
    h('p', { class: 'command quiet' }, 'The same in a terminal: ', typed_command),
  );
}

/// The rest of the planner's verdict, on the budget that the map was made for.
export function more_on_start(state: MapState): HTMLElement {
  const sentences = state.map.verdict.slice(2);
  const place = h('p', { class: 'section-lead' }, sentences.join(' '));
  const refresh = () => (place.hidden = !state.at_start || sentences.length === 0);
  state.listen(refresh);
  refresh();
  return place;
}
