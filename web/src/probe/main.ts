// The page of a probe: what a trained model does with its depth on a text.
import type { Plot } from '../charts/plot';
import type { ProbeDocument } from '../generated/probe_schema';
import { h } from '../dom';
import { duration, fixed, si, whole } from '../format';
import { top_bar } from '../page/header';
import { section } from '../page/section';
import { build_comparison, type Comparison } from './comparison';
import { curve_chart, lens_charts, stream_charts } from './charts';
import { distance_map } from './distance_map';
import { head_grid } from './head_grid';
import { depth_strip, replacements } from './strip';

function header(probe: ProbeDocument): HTMLElement {
  const { model } = probe;
  const facts: [string, string][] = [
    ['layers × width', `${model.layers} × ${model.width}`],
    ['parameters', si(model.parameters)],
    ['tokens measured', whole(probe.tokens)],
  ];
  if (probe.loss !== null) facts.push(['nats per token', fixed(probe.loss, 3)]);
  if (probe.bits_per_byte !== null) facts.push(['bits per byte', fixed(probe.bits_per_byte, 3)]);
  facts.push(['measuring', duration(probe.seconds)]);
  const [lead, ...rest] = probe.verdict;
  return h(
    'header',
    { id: 'top' },
    h('p', { class: 'eyebrow' }, `Fathom ${probe.fathom} probe · on ${probe.text}`),
    h('h1', {}, model.name),
    h('p', { class: 'question' }, 'How does this model use its depth?'),
    h(
      'div',
      { class: 'answer' },
      lead ? h('p', { class: 'lead' }, lead) : null,
      ...rest.map((sentence) => h('p', {}, sentence)),
    ),
    h(
      'dl',
      { class: 'facts' },
      ...facts.map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))),
    ),
  );
}

function trust(probe: ProbeDocument): HTMLElement {
  const { agreement } = probe;
  const lines = [
    `${whole(probe.tokens)} tokens in ${probe.windows} windows of up to ${probe.window}; measuring ` +
      `ended because ${probe.stopped_because}.`,
    'Costs are paired: the same tokens with and without a layer. Intervals are of 95 %, with ' +
      'windows as units.',
  ];
  if (agreement.removal_of_halves !== null)
    lines.push(
      `Rank correlation of removal costs on two halves of the text: ` +
        `${fixed(agreement.removal_of_halves, 2)}; of influences: ` +
        `${fixed(agreement.influence_of_halves, 2)}. Influence with cost: ` +
        `${fixed(agreement.influence_and_removal, 2)}.`,
    );
  lines.push(
    'Everything is computed in f32. The first place of a window is left out of influence, angles ' +
      'and ranks: many models park large numbers there.',
    'A loss on a text says nothing about reasoning, long contexts or other texts.',
    ...probe.notes,
  );
  return h('ul', { class: 'trust' }, ...lines.map((line) => h('li', {}, line)));
}

function build(probe: ProbeDocument): void {
  const plots: Plot[] = [];
  const keep = (list: Plot[]): HTMLElement[] => {
    plots.push(...list);
    return list.map((plot) => plot.figure);
  };
  const parts: [string, string, string, (Node | null)[]][] = [
    [
      'layers',
      'What each layer is worth',
      'Nats per token that removing a layer costs, on a logarithmic axis; the line is the interval.',
      [depth_strip(probe), replacements(probe)],
    ],
  ];
  if (probe.greedy.length > 1)
    parts.push([
      'cuts',
      'What if there were fewer layers?',
      `Loss when layers are cut and nothing is retrained, on ${whole(probe.curve_tokens)} tokens.`,
      keep([curve_chart(probe)]),
    ]);
  if (probe.lens.length > 0)
    parts.push([
      'lens',
      'How the answer forms',
      'The final norm and head applied to the stream after each layer (logit lens). Early layers ' +
        'were never trained to be read so.',
      keep(lens_charts(probe)),
    ]);
  parts.push([
    'stream',
    'What the layers write',
    'Norms of the stream and of what each half adds to it, and how many directions it uses.',
    keep(stream_charts(probe)),
  ]);
  parts.push([
    'blocks',
    'Which stretches change little',
    'Angle between the stream before layer l and after n layers, in half turns, for every block.',
    [distance_map(probe)],
  ]);
  if (probe.heads.length > 0)
    parts.push([
      'heads',
      'What the heads do',
      'One cell per head, coloured by its role; hover for its scores. The bar is how much it writes.',
      [head_grid(probe)],
    ]);
  parts.push(['trust', 'How far to trust this', '', [trust(probe)]]);
  addEventListener('beforeprint', () => plots.forEach((plot) => plot.print()));
  addEventListener('afterprint', () => plots.forEach((plot) => plot.update()));
  const links = parts.map(([id]): [string, string] => [id, id[0]!.toUpperCase() + id.slice(1)]);
  document
    .getElementById('page')!
    .append(
      top_bar(links),
      h(
        'main',
        {},
        header(probe),
        ...parts.map(([id, title, lead, content]) => section(id, title, lead, ...content)),
      ),
      h(
        'footer',
        {},
        'Written by Fathom. Everything on this page, data included, is in this one file.',
      ),
    );
}

const source: ProbeDocument | Comparison = JSON.parse(
  document.getElementById('fathom-document')!.textContent ?? '{}',
);
if (source.schema === 'fathom.probe_compare.v1') {
  build_comparison(source);
} else {
  document.title = `Probe of ${source.model.name}`;
  build(source);
}
// For measuring: the page answers from here on.
requestAnimationFrame(() => setTimeout(() => performance.mark('fathom-ready')));
