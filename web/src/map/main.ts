// The map of shapes: where a budget may be spent, what the laws say, and what people built. The
// document comes from one program, is checked against the schema by its tests, and is read as it is.
import type { MapDocument, PlanRow } from '../generated/map_schema';
import { h } from '../dom';
import { top_bar } from '../page/header';
import { fetch_json, news_address } from '../live/news';
import { section } from '../page/section';
import { answer, costs, more_on_start, typed_words } from './answer';
import { shape_map } from './chart';
import { controls } from './controls';
import { law_legend } from './legend';
import { MapState } from './state';
import { live_tables } from './tables';

const day = (created: string): string => created.replace('T', ' ').replace(/Z$/, '');

function method(map: MapDocument): HTMLElement {
  const sentences = [
    'The sliders stop where the planner was asked. Every number is its answer at that stop, to six ' +
      'digits; nothing is interpolated, and curves are straight between stops.',
    `The budget counts ${map.held_equal}.`,
    `Picks have the objective ${map.objective}; the band allows ` +
      `${Number((100 * map.tolerance).toPrecision(2))} % above the best loss.`,
    `Times are modelled, not measured: one device, ${map.step_tokens} tokens per step, a context of ` +
      `${map.context}; a decoded token comes after half a context.`,
    'Published models stand at their own size; the laws are asked at the tokens they were trained ' +
      'on where these are known, else at 20 per parameter.',
  ];
  return h('ul', { class: 'method' }, ...sentences.map((sentence) => h('li', {}, sentence)));
}

/// On a served page the words after 'fathom plan' may be changed; the planner answers with another
/// map.
function planner(state: MapState): HTMLElement {
  const words = h('input', {
    name: 'plan',
    value: typed_words(state),
    'aria-label': 'Size and options of fathom plan',
    spellcheck: 'false',
  });
  return h(
    'form',
    { class: 'planner', action: '/map', method: 'get' },
    h('code', {}, 'fathom plan'),
    words,
    h('button', { type: 'submit' }, 'Plan'),
  );
}

const ask_rows = (address: string) => (count: string, ratio: number) =>
  fetch_json<PlanRow>(`${address}&count=${count}&ratio=${ratio}`);

function build(map: MapDocument): void {
  const address = news_address();
  const state = new MapState(map, address ? ask_rows(address) : null);
  const plot = shape_map(state);
  addEventListener('beforeprint', () => plot.print());
  addEventListener('afterprint', () => plot.update());
  document.getElementById('page')!.append(
    top_bar([
      ['map', 'Map'],
      ['numbers', 'Numbers'],
      ['method', 'Method'],
    ]),
    h(
      'main',
      {},
      h(
        'header',
        { id: 'top' },
        h('p', { class: 'eyebrow' }, `Fathom ${map.versions.fathom ?? ''} · ${day(map.created)}`),
        h('h1', {}, 'The map of shapes'),
        h('p', { class: 'question' }, 'How deep and how wide should a transformer be?'),
        answer(state),
        address ? planner(state) : null,
      ),
      controls(state),
      law_legend(state),
      plot.figure,
      section(
        'numbers',
        'At this budget',
        '',
        more_on_start(state),
        costs(state),
        live_tables(state),
      ),
      section('method', 'What this shows', '', method(map)),
    ),
    h(
      'footer',
      {},
      address
        ? h('a', { href: '/' }, 'All that is served here')
        : 'Written by Fathom. Everything on this page, data included, is in this one file.',
    ),
  );
}

const map: MapDocument = JSON.parse(
  document.getElementById('fathom-document')!.textContent ?? '{}',
);
document.title = map.title;
build(map);
// For measuring: the page answers from here on.
requestAnimationFrame(() => setTimeout(() => performance.mark('fathom-ready')));
