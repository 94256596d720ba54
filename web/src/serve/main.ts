// The first page of 'fathom serve': the map, the studies, labs and probes, kept current while it is
// open.
import { h } from '../dom';
import { fixed, whole } from '../format';
import type { Card, OverviewDocument, ProbeCard } from '../generated/serve_schema';
import { follow, news_address } from '../live/news';
import { state_line, study_bar } from '../live/progress';
import { top_bar } from '../page/header';
import { section } from '../page/section';

const link = (address: string, ...content: (Node | string | null)[]): HTMLElement =>
  h('a', { class: 'card', href: address }, ...content);

function study_card(card: Card): HTMLElement {
  const { state, best } = card;
  return link(
    `/study/${encodeURIComponent(card.name)}`,
    h('h3', {}, card.title),
    card.title === card.name ? null : h('p', { class: 'quiet' }, card.name),
    card.problem ? h('p', { class: 'warning' }, card.problem) : null,
    state ? study_bar(state) : null,
    state ? h('p', { class: 'live-state' }, `${state_line(state)}.`) : null,
    state?.decided[0] ? h('p', { class: 'decided' }, state.decided[0]) : null,
    best
      ? h(
          'p',
          { class: 'quiet' },
          `Lowest loss ${fixed(best.loss, 4)}: ${best.layers} layers × ${whole(best.width)}.`,
        )
      : null,
  );
}

function studies(overview: OverviewDocument): HTMLElement {
  if (overview.studies.length > 0)
    return h('div', { class: 'cards' }, ...overview.studies.map(study_card));
  return h(
    'p',
    { class: 'quiet' },
    `There is no study in ${overview.roots.join(', ')} yet. `,
    h('code', {}, 'fathom study run --preset quick my-study'),
    ' begins one; it will appear here.',
  );
}

function labs(overview: OverviewDocument): HTMLElement | null {
  if (overview.labs.length === 0) return null;
  const cards = overview.labs.map((lab) =>
    link(
      `/lab/${encodeURIComponent(lab.name)}`,
      h('h3', {}, lab.name),
      h('p', { class: 'quiet' }, 'Claims about depth, each with its verdict.'),
    ),
  );
  return section('labs', 'Lab', '', h('div', { class: 'cards' }, ...cards));
}

function probe_card(probe: ProbeCard): HTMLElement {
  const loss = probe.loss === null ? '' : `, ${fixed(probe.loss, 3)} nats per token`;
  return link(
    `/probe/${encodeURIComponent(probe.name)}`,
    h('h3', {}, probe.problem ? probe.name : probe.model),
    probe.problem ? h('p', { class: 'warning' }, probe.problem) : null,
    probe.problem
      ? null
      : h(
          'p',
          { class: 'quiet' },
          `${probe.layers} layers × ${whole(probe.width)} on ${whole(probe.tokens)} tokens of ` +
            `${probe.text}${loss}.`,
        ),
    probe.verdict ? h('p', { class: 'decided' }, probe.verdict) : null,
  );
}

function probes(overview: OverviewDocument): HTMLElement | null {
  if (overview.probes.length === 0) return null;
  const cards = h('div', { class: 'cards' }, ...overview.probes.map(probe_card));
  return section('probes', 'Probes', 'What trained models do with their depth.', cards);
}

function planner(): HTMLElement {
  const words = h('input', {
    name: 'plan',
    value: '1.3B',
    'aria-label': 'Size and options of fathom plan',
    spellcheck: 'false',
  });
  return h(
    'form',
    { class: 'planner', action: '/map', method: 'get' },
    h('code', {}, 'fathom plan'),
    words,
    h('button', { type: 'submit' }, 'Show the map'),
  );
}

const source = document.getElementById('fathom-document')!.textContent ?? '{}';
const first: OverviewDocument = JSON.parse(source);
const study_place = h('div', {}, studies(first));
const lab_place = h('div', {}, labs(first));
const probe_place = h('div', {}, probes(first));
const gone = h('p', { class: 'warning', role: 'status', hidden: true }, 'The server has ended.');
document.title = first.title;
document.getElementById('page')!.append(
  top_bar([
    ['plan', 'Plan'],
    ['studies', 'Studies'],
    ...(first.labs.length > 0 ? [['labs', 'Lab'] as [string, string]] : []),
    ...(first.probes.length > 0 ? [['probes', 'Probes'] as [string, string]] : []),
  ]),
  h(
    'main',
    {},
    h(
      'header',
      { id: 'top' },
      h('p', { class: 'eyebrow' }, `Fathom ${first.versions.fathom ?? ''}`),
      h('h1', {}, 'How deep and how wide should a transformer be?'),
    ),
    gone,
    section(
      'plan',
      'Plan',
      'The map of shapes for a budget: what the laws say, what people built, what it costs.',
      planner(),
    ),
    section('studies', 'Studies', '', study_place),
    lab_place,
    probe_place,
  ),
  h('footer', {}, 'Served by Fathom on this machine. Nothing can be changed from here.'),
);
const address = news_address();
if (address)
  follow<OverviewDocument>(
    () => address,
    (overview) => {
      study_place.replaceChildren(studies(overview));
      lab_place.replaceChildren(...[labs(overview)].filter((entry) => entry !== null));
      probe_place.replaceChildren(...[probes(overview)].filter((entry) => entry !== null));
    },
    (yes) => (gone.hidden = yes),
  );
// For measuring: the page answers from here on.
requestAnimationFrame(() => setTimeout(() => performance.mark('fathom-ready')));
