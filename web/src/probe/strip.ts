// The depth strip: one row per layer with its influence, its cost and its class; and what could
// replace it.
import { max } from 'd3-array';
import type { Cost, Layer, ProbeDocument } from '../generated/probe_schema';
import { h } from '../dom';
import { fixed } from '../format';

const kLeast = 0.001;
const kDecades = 4;

/// Share of a logarithmic axis from 0.001 to 10 nats.
const place = (nats: number): number =>
  Math.min(1, Math.max(0, Math.log10(Math.max(nats, kLeast) / kLeast) / kDecades));

const percent = (share: number): string => `${(100 * share).toFixed(2)}%`;

export function cost_bar(layer: Layer): HTMLElement {
  const { removal, removal_low: low, removal_high: high } = layer;
  if (removal === null) return h('span', {});
  const children = [h('span', { class: 'fill', style: `width:${percent(place(removal))}` })];
  if (low !== null && high !== null && high > kLeast)
    children.push(
      h('span', {
        class: 'whisker',
        style: `left:${percent(place(low))};width:${percent(place(high) - place(low))}`,
      }),
    );
  return h('span', { class: `bar-track ${layer.class}` }, ...children);
}

const half_bar = (value: number | null): HTMLElement =>
  h(
    'span',
    { class: 'bar-track half' },
    value === null ? null : h('span', { class: 'fill', style: `width:${percent(place(value))}` }),
  );

export const nats = (value: number | null): string =>
  value === null ? '–' : fixed(value, Math.abs(value) < 0.1 ? 4 : 3);

function row(layer: Layer, most: number): HTMLElement {
  const reach =
    layer.removal_high === null || layer.removal_low === null
      ? ''
      : ` ± ${nats((layer.removal_high - layer.removal_low) / 2)}`;
  return h(
    'tr',
    { 'data-layer': layer.layer },
    h('th', { scope: 'row' }, String(layer.layer)),
    h(
      'td',
      { class: 'influence', title: `Block Influence ${fixed(layer.bi, 4)}` },
      h(
        'span',
        { class: 'bar-track' },
        h('span', { class: 'fill', style: `width:${percent((layer.bi ?? 0) / most)}` }),
      ),
      h('span', { class: 'value' }, fixed(layer.bi, 3)),
    ),
    h('td', { class: 'cost' }, cost_bar(layer)),
    h('td', { class: 'number' }, nats(layer.removal) + reach),
    h(
      'td',
      {
        class: 'halves',
        title:
          `without attention ${nats(layer.attention_removal)}, ` +
          `without feed-forward ${nats(layer.ffn_removal)} nats`,
      },
      half_bar(layer.attention_removal),
      half_bar(layer.ffn_removal),
    ),
    h('td', {}, h('span', { class: `class-name ${layer.class}` }, layer.class)),
  );
}

export function depth_strip(probe: ProbeDocument): HTMLElement {
  const most = Math.max(1e-9, max(probe.layers, (layer) => layer.bi ?? 0) ?? 0);
  const head = ['layer', 'influence', 'cost of removing it, 0.001 to 10 nats', 'nats ± interval',
    'attention, ffn', 'class'];
  return h(
    'div',
    { class: 'table-scroll', tabindex: 0, role: 'region', 'aria-label': 'Layers' },
    h(
      'table',
      { class: 'exhibit strip' },
      h('thead', {}, h('tr', {}, ...head.map((name) => h('th', { scope: 'col' }, name)))),
      h('tbody', {}, ...probe.layers.map((layer) => row(layer, most))),
    ),
  );
}

const mean = (cost: Cost | null): string => (cost === null ? '–' : nats(cost.mean));

/// Costs of what could replace a layer, folded away.
export function replacements(probe: ProbeDocument): HTMLElement | null {
  if (probe.loss === null) return null;
  const head = ['layer', 'left out', 'mean shift', 'linear map', 'map explains', 'swapped with next'];
  return h(
    'details',
    {},
    h('summary', {}, 'What could stand in a layer’s place, in nats'),
    h(
      'div',
      { class: 'table-scroll', tabindex: 0, role: 'region', 'aria-label': 'Replacements' },
      h(
        'table',
        { class: 'exhibit' },
        h('thead', {}, h('tr', {}, ...head.map((name) => h('th', { scope: 'col' }, name)))),
        h(
          'tbody',
          {},
          ...probe.layers.map((layer) =>
            h(
              'tr',
              {},
              h('th', { scope: 'row' }, String(layer.layer)),
              ...[
                nats(layer.removal),
                mean(layer.mean_shift),
                mean(layer.linear_map),
                layer.linear_map_explains === null
                  ? '–'
                  : `${Math.round(100 * layer.linear_map_explains)} %`,
                mean(layer.swap_with_next),
              ].map((text) => h('td', { class: 'number' }, text)),
            ),
          ),
        ),
      ),
    ),
  );
}
