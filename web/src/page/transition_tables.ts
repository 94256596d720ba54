// The laws and the transitions as small tables next to their chart.
import type { Law, Transition } from '../document';
import { h } from '../dom';
import { si, whole, with_error } from '../format';
import type { Model } from '../model';

/// The two laws and every transition in words and numbers.
export function transition_tables(model: Model): HTMLElement {
  const { law, published, transitions } = model.study;
  const box = h('div', { class: 'side-tables' });
  const laws = [law, published].filter((entry): entry is Law => entry !== null);
  if (laws.length > 0) {
    const rows = laws.map((entry) =>
      h(
        'tr',
        {},
        h('th', { scope: 'row' }, entry.name),
        cell(with_error(entry.a, entry.a_error, 3)),
        cell(with_error(entry.b, entry.b_error, 4)),
        cell(whole(entry.points)),
      ),
    );
    box.append(simple_table('Law, ln d = a + b·L', ['', 'a', 'b', 'points'], rows));
  }
  if (transitions.length > 0) box.append(transition_table(transitions));
  return box;
}

function transition_table(transitions: Transition[]): HTMLElement {
  const rows = transitions.map((entry) => {
    const interval =
      entry.low !== null && entry.high !== null
        ? `${si(entry.low)} – ${si(entry.high)}`
        : entry.low !== null
          ? `> ${si(entry.low)}`
          : entry.high !== null
            ? `< ${si(entry.high)}`
            : '–';
    return h(
      'tr',
      {},
      h('th', { scope: 'row' }, `${entry.shallow} → ${entry.deep}`),
      cell(si(entry.params)),
      cell(interval),
      cell(whole(entry.width)),
      h('td', {}, entry.status),
    );
  });
  return simple_table(
    'Transitions',
    ['layers', 'size N', '95 % interval', 'width d', 'status'],
    rows,
  );
}

const cell = (text: string): HTMLElement => h('td', { class: 'number' }, text);

export function simple_table(caption: string, head: string[], rows: HTMLElement[]): HTMLElement {
  return h(
    'table',
    { class: 'plain' },
    h('caption', {}, caption),
    h('thead', {}, h('tr', {}, ...head.map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', {}, ...rows),
  );
}
