// The report: reads the document embedded in the page and builds the page from it.
import { cost } from './charts/cost';
import { depth_legend } from './charts/depth_legend';
import { depth_width_map } from './charts/depth_width_map';
import { excess_by_size, loss_by_size } from './charts/loss_by_size';
import { loss_curves } from './charts/loss_curves';
import type { Plot } from './charts/plot';
import { speed } from './charts/speed';
import { transition_widths } from './charts/transition_widths';
import { read_study } from './document';
import { h } from './dom';
import { plural } from './format';
import { news_address } from './live/news';
import { live_study, type RawDocument } from './live/study_live';
import { make_model, type Model } from './model';
import { depth_styles } from './palette';
import { header, top_bar } from './page/header';
import { method } from './page/method';
import { RunTable } from './page/run_table';
import { section } from './page/section';
import { transition_tables } from './page/transition_tables';
import { Store } from './store';

/// Charts and the printed table are complete on paper even where the reader never scrolled.
function prepare_print(plots: Plot[], table: RunTable, host: HTMLElement): void {
  addEventListener('beforeprint', () => {
    for (const plot of plots) plot.print();
    host.replaceChildren(table.printed());
  });
  addEventListener('afterprint', () => {
    for (const plot of plots) plot.update();
    host.replaceChildren();
  });
}

function fit_lead(model: Model): string {
  const { study } = model;
  if (!study.has_fit)
    return 'No law has been fitted to these runs. The published law is drawn for comparison.';
  return study.answer[1] || study.verdict || 'The fit came without a verdict.';
}

function cautions(model: Model): HTMLElement | null {
  const { cautions } = model.study;
  if (cautions.length === 0) return null;
  const items = cautions.map((caution) => h('li', {}, sentence(caution)));
  return h('ul', { class: 'warning cautions', role: 'note' }, ...items);
}

/// Warnings of the command line begin in lower case and end without a full stop.
const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

function budget_note(model: Model): string {
  const rest = model.finished.length - model.longest.length;
  if (rest === 0) return '';
  const others = `${plural(rest, 'run')} with smaller ones`;
  return (
    `Shapes are compared at their largest token budget; ${others} stand in the table, the cost ` +
    'and the curves.'
  );
}

/// Parts of the page that are rebuilt when the document changes.
class Fresh {
  private readonly fill_: (() => void)[] = [];

  part(make: () => (Node | null)[]): HTMLElement {
    const place = h('div', { class: 'fresh' });
    const fill = () => place.replaceChildren(...make().filter((node) => node !== null));
    this.fill_.push(fill);
    fill();
    return place;
  }

  update(): void {
    for (const fill of this.fill_) fill();
  }
}

/// Builds the page; `live` goes above the report. Returns a function that redraws it.
function build(model: Model, live: HTMLElement | null): () => void {
  const fresh = new Fresh();
  const store = new Store(model.depths);
  const plots = {
    size: loss_by_size(model, store),
    excess: excess_by_size(model, store),
    widths: transition_widths(model),
    map: depth_width_map(model, store),
    speed: speed(model, store),
    cost: cost(model, store),
    curves: loss_curves(model, store),
  };
  const all = Object.values(plots);
  store.listen(() => all.forEach((plot) => plot.update()));
  const table = new RunTable(model, store);
  const print_host = h('div', { class: 'print-only' });
  prepare_print(all, table, print_host);
  document.head.append(h('style', {}, depth_styles(model.depths.length)));
  const sections: [string, string][] = [
    ['loss', 'Loss'],
    ['law', 'Law'],
    ['map', 'Map'],
    ['speed-cost', 'Speed'],
    ['training', 'Training'],
    ['runs', 'Runs'],
    ['method', 'Method'],
  ];
  const legend = () => (model.depths.length > 1 ? depth_legend(store) : null);
  document
    .getElementById('page')!
    .append(
      top_bar(sections),
      h(
        'main',
        {},
        live,
        fresh.part(() => [header(model)]),
        section(
          'loss',
          'When does depth pay?',
          '',
          fresh.part(() => [lead(budget_note(model))]),
          legend(),
          plots.size.figure,
          plots.excess.figure,
        ),
        section(
          'law',
          'The law of width and depth',
          '',
          fresh.part(() => [lead(fit_lead(model)), cautions(model)]),
          plots.widths.figure,
          fresh.part(() => [transition_tables(model)]),
        ),
        section('map', 'Every shape at once', '', plots.map.figure),
        section(
          'speed-cost',
          'Speed and cost',
          '',
          legend(),
          h('div', { class: 'pair' }, plots.speed.figure, plots.cost.figure),
        ),
        section('training', 'Along training', '', legend(), plots.curves.figure),
        section('runs', 'The runs', '', table.element, print_host),
        section(
          'method',
          'Method, and how to repeat it',
          '',
          fresh.part(() => method(model)),
        ),
      ),
      h(
        'footer',
        {},
        live
          ? h('a', { href: '/' }, 'All that is served here')
          : 'Written by Fathom. Everything on this page, data included, is in this one file.',
      ),
    );
  return () => {
    fresh.update();
    for (const plot of all) plot.update();
    table.update();
  };
}

const lead = (text: string): HTMLElement | null =>
  text ? h('p', { class: 'section-lead' }, text) : null;

/// Reads the changed document into the model that all parts of the page look at.
function read_again(raw: RawDocument, model: Model, draw: () => void): void {
  const next = make_model(read_study(raw));
  // Other depths have other colours and switches.
  if (next.depths.join() !== model.depths.join()) return location.reload();
  Object.assign(model, next);
  draw();
}

const source = document.getElementById('fathom-document')!.textContent ?? '{}';
const raw: RawDocument = JSON.parse(source);
const model = make_model(read_study(raw));
document.title = model.study.title;
const address = news_address();
let draw = () => {};
const live = address ? live_study(address, raw, () => read_again(raw, model, draw)) : null;
draw = build(model, live);
// For measuring: the page answers from here on.
requestAnimationFrame(() => setTimeout(() => performance.mark('fathom-ready')));
