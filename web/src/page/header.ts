// The top of the report: the question, the answer in three sentences, and the study in numbers.
import { extent, sum } from 'd3-array';
import { h } from '../dom';
import { news_address } from '../live/news';
import { duration, fixed, flops, plural, si, whole } from '../format';
import type { Model } from '../model';
import { theme_switch } from './theme';

export function top_bar(sections: [string, string][]): HTMLElement {
  return h(
    'nav',
    { class: 'bar', 'aria-label': 'Sections' },
    h('a', { class: 'brand', href: news_address() ? '/' : '#top' }, 'Fathom'),
    h(
      'div',
      { class: 'bar-links' },
      ...sections.map(([id, name]) => h('a', { href: `#${id}` }, name)),
    ),
    theme_switch(),
  );
}

export function header(model: Model): HTMLElement {
  const { study } = model;
  const [lead, ...rest] = study.answer;
  const answer = lead
    ? [h('p', { class: 'lead' }, lead), ...rest.map((sentence) => h('p', {}, sentence))]
    : [h('p', { class: 'lead' }, study.verdict || no_answer(model))];
  return h(
    'header',
    { id: 'top' },
    h(
      'p',
      { class: 'eyebrow' },
      'Depth and width study',
      study.created ? ` · ${day(study.created)}` : '',
    ),
    h('h1', {}, study.title),
    study.question ? h('p', { class: 'question' }, study.question) : null,
    h('div', { class: 'answer' }, ...answer),
    advice(model),
    facts(model),
    warnings(model),
  );
}

/// What to do next, with the command that does it.
function advice(model: Model): HTMLElement | null {
  const { advice } = model.study;
  if (advice.length === 0) return null;
  return h(
    'section',
    { class: 'advice', 'aria-label': 'What to do' },
    h('h2', {}, 'What to do'),
    h(
      'ol',
      {},
      ...advice.map((entry) =>
        h('li', {}, entry.text, entry.command ? h('code', {}, entry.command) : null),
      ),
    ),
  );
}

const day = (created: string): string => created.replace('T', ' ').replace(/(:\d\d)\..*|Z$/, '$1');

function no_answer(model: Model): string {
  if (model.study.runs.length === 0) return 'There is no run yet, so there is no answer yet.';
  return 'No law has been fitted yet; the charts show what was measured.';
}

function facts(model: Model): HTMLElement {
  const { runs } = model.study;
  const [least, most] = extent(runs, (run) => run.params ?? undefined);
  const best = model.finished.reduce<(typeof runs)[number] | null>(
    (a, b) => (a === null || b.loss! < a.loss! ? b : a),
    null,
  );
  const entries: [string, string, string][] = [
    [whole(model.finished.length), 'finished runs', `of ${plural(runs.length, 'run')}`],
    [String(model.depths.length), 'depths', model.depths.length > 0 ? range(model.depths) : ''],
    [
      least === undefined ? '–' : least === most ? si(least) : `${si(least)}–${si(most!)}`,
      'parameters',
      '',
    ],
    [
      best ? fixed(best.loss, 3) : '–',
      'lowest loss',
      best ? `${best.layers} × ${best.width ?? '?'}` : '',
    ],
    [
      duration(sum(runs, (run) => run.seconds ?? 0) || null),
      'of training',
      `${flops(sum(runs, (run) => run.flops ?? 0) || null)} FLOPs`,
    ],
  ];
  return h(
    'dl',
    { class: 'facts' },
    ...entries.map(([value, name, more]) =>
      h(
        'div',
        {},
        h('dt', {}, name),
        h('dd', {}, value),
        more ? h('dd', { class: 'more' }, more) : null,
      ),
    ),
  );
}

const range = (depths: number[]): string =>
  depths.length <= 6 ? depths.join(', ') : `${depths[0]} to ${depths[depths.length - 1]} layers`;

function warnings(model: Model): HTMLElement | null {
  // What has not been trained yet is not a failure; the advice says how to go on.
  const bad = model.bad.filter((run) => run.status !== 'pending' && run.status !== 'running');
  if (bad.length === 0) return null;
  const counts = new Map<string, number>();
  for (const run of bad) counts.set(run.status, (counts.get(run.status) ?? 0) + 1);
  const parts = [...counts].map(([status, count]) => `${whole(count)} ${status}`);
  return h(
    'p',
    { class: 'warning', role: 'note' },
    `${plural(bad.length, 'run')} without a usable loss: ${parts.join(', ')}. `,
    h('a', { href: '#runs' }, 'The table of runs'),
    ' has the reasons.',
  );
}
