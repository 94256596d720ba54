// Two probes on one page: what they say together, their layers side by side, their cuts.
import type { Plot } from '../charts/plot';
import type { Layer, ProbeDocument } from '../generated/probe_schema';
import type { Series } from '../generated/lab_schema';
import { h } from '../dom';
import { fixed, si, whole } from '../format';
import { line_chart } from '../lab/exhibits';
import { top_bar } from '../page/header';
import { section } from '../page/section';
import { cost_bar, nats } from './strip';

/// probe/comparison.h
export interface Comparison {
  schema: 'fathom.probe_compare.v1';
  fathom: string;
  sentences: string[];
  cuts: { share: number; a: number | null; b: number | null }[];
  a: ProbeDocument;
  b: ProbeDocument;
}

/// Their names, made distinct where they are the same.
function names({ a, b }: Comparison): [string, string] {
  const same = a.model.name === b.model.name;
  return [`${a.model.name}${same ? ' (A)' : ''}`, `${b.model.name}${same ? ' (B)' : ''}`];
}

function facts(probe: ProbeDocument, name: string): HTMLElement {
  const entries: [string, string][] = [
    ['layers × width', `${probe.model.layers} × ${probe.model.width}`],
    ['parameters', si(probe.model.parameters)],
    ['tokens measured', whole(probe.tokens)],
  ];
  if (probe.loss !== null) entries.push(['nats per token', fixed(probe.loss, 3)]);
  return h(
    'div',
    {},
    h('h3', {}, name),
    h('p', { class: 'quiet' }, `on ${probe.text}`),
    h(
      'dl',
      { class: 'facts' },
      ...entries.map(([term, value]) => h('div', {}, h('dt', {}, term), h('dd', {}, value))),
    ),
  );
}

function cells(layer: Layer | undefined): HTMLElement[] {
  if (!layer) return [h('td', { colspan: 3 })];
  return [
    h('td', { class: 'cost' }, cost_bar(layer)),
    h('td', { class: 'number' }, nats(layer.removal)),
    h('td', {}, h('span', { class: `class-name ${layer.class}` }, layer.class)),
  ];
}

function layers(comparison: Comparison): HTMLElement {
  const { a, b } = comparison;
  const [first, second] = names(comparison);
  const count = Math.max(a.layers.length, b.layers.length);
  const rows = Array.from({ length: count }, (_, l) =>
    h('tr', {}, h('th', { scope: 'row' }, String(l)), ...cells(a.layers[l]), ...cells(b.layers[l])),
  );
  return h(
    'div',
    { class: 'table-scroll', tabindex: 0, role: 'region', 'aria-label': 'Layers of both' },
    h(
      'table',
      { class: 'exhibit strip' },
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          h('th', { scope: 'col' }, 'layer'),
          h('th', { scope: 'colgroup', colspan: 3 }, first),
          h('th', { scope: 'colgroup', colspan: 3 }, second),
        ),
      ),
      h('tbody', {}, ...rows),
    ),
  );
}

const percent = (share: number): number => Math.round(1000 * share) / 10;

/// What greedy cuts cost against the share of layers that are gone.
function cuts(name: string, probe: ProbeDocument): Series {
  const whole_loss = probe.greedy[0]?.loss ?? 0;
  return {
    name,
    points: probe.greedy.map((point) => ({
      x: percent((probe.model.layers - point.kept) / probe.model.layers),
      y: point.loss === null ? null : point.loss - whole_loss,
      low: null,
      high: null,
    })),
  };
}

/// Influence against the position in the model: 0 its first layer, 100 its last.
function influences(name: string, probe: ProbeDocument): Series {
  const last = Math.max(1, probe.layers.length - 1);
  return {
    name,
    points: probe.layers.map((layer, l) => ({
      x: percent(l / last),
      y: layer.bi,
      low: null,
      high: null,
    })),
  };
}

function chart(id: string, title: string, x: string, y: string, series: Series[]): Plot {
  return line_chart({ title, x, y, log_x: false, log_y: false, series }, id);
}

export function build_comparison(comparison: Comparison): void {
  const { a, b } = comparison;
  const [first, second] = names(comparison);
  const plots: Plot[] = [
    chart('compared-influence', 'Block Influence', 'place in the model, %', 'influence', [
      influences(first, a),
      influences(second, b),
    ]),
  ];
  if (a.greedy.length > 1 && b.greedy.length > 1)
    plots.unshift(
      chart('compared-cuts', 'Cost of greedy cuts', 'layers cut, %', 'nats per token', [
        cuts(first, a),
        cuts(second, b),
      ]),
    );
  addEventListener('beforeprint', () => plots.forEach((plot) => plot.print()));
  addEventListener('afterprint', () => plots.forEach((plot) => plot.update()));
  document.title = `${first} beside ${second}`;
  const [lead, ...rest] = comparison.sentences;
  document.getElementById('page')!.append(
    top_bar([
      ['layers', 'Layers'],
      ['curves', 'Curves'],
    ]),
    h(
      'main',
      {},
      h(
        'header',
        { id: 'top' },
        h('p', { class: 'eyebrow' }, `Fathom ${comparison.fathom} probe · two models`),
        h('h1', {}, `${first} beside ${second}`),
        h(
          'div',
          { class: 'answer' },
          lead ? h('p', { class: 'lead' }, lead) : null,
          ...rest.map((sentence) => h('p', {}, sentence)),
        ),
        h('div', { class: 'two-sides' }, facts(a, first), facts(b, second)),
      ),
      section(
        'layers',
        'What each layer is worth',
        'Nats per token that removing a layer costs, from 0.001 to 10 on a logarithmic axis. Costs ' +
          'are paired within a model, not between the two.',
        layers(comparison),
      ),
      section('curves', 'How they use their depth', '', ...plots.map((plot) => plot.figure)),
    ),
    h(
      'footer',
      {},
      'Written by Fathom. Everything on this page, data included, is in this one file.',
    ),
  );
}
