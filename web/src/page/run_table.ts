// The table of runs. Only the rows on screen exist, so ten thousand scroll like ten; a spacer gives
// the scroll bar its length. On paper the first rows of the present view are printed.
import type { Run } from '../document';
import { button, h } from '../dom';
import { save_csv } from '../export/save_menu';
import { layers, plural, whole } from '../format';
import { is_finished, type Model } from '../model';
import type { Store } from '../store';
import { kColumns, kFields, sorted } from './run_columns';
import { parse_filter } from './run_filter';

const kRow = 32;
const kMostPrinted = 400;

export class RunTable {
  readonly element: HTMLElement;
  private readonly count_ = h('span', { class: 'count', role: 'status' });
  private readonly query_ = h('input', {
    type: 'search',
    placeholder: 'layers=6 params<2M diverged',
    'aria-label': 'Filter runs by words or comparisons',
    spellcheck: 'false',
  });
  private readonly depth_: HTMLSelectElement;
  private readonly status_: HTMLSelectElement;
  private readonly scroller_: HTMLElement;
  private readonly body_ = h('div', { class: 'rows', role: 'rowgroup' });
  private readonly heads_: HTMLElement[] = [];
  private sort_ = {
    column: kColumns.find((column) => column.name === 'loss') ?? kColumns[0]!,
    descending: false,
  };
  private rows_: Run[] = [];
  private first_ = -1;

  constructor(
    private readonly model_: Model,
    store: Store,
  ) {
    const statuses = [...new Set(model_.study.runs.map((run) => run.status))].sort();
    this.depth_ = select(
      'Depth',
      'All depths',
      model_.depths.map((depth) => [String(depth), layers(depth)]),
    );
    this.status_ = select(
      'Status',
      'All statuses',
      statuses.map((status) => [status, status]),
    );
    this.scroller_ = h(
      'div',
      { class: 'run-table', role: 'table', 'aria-label': 'Runs', tabindex: 0 },
      h(
        'div',
        { class: 'head', role: 'rowgroup' },
        h('div', { role: 'row', class: 'row' }, ...this.make_heads()),
      ),
      this.body_,
    );
    const columns = kColumns.map((column) => `minmax(0,${column.share}fr)`).join(' ');
    this.scroller_.style.setProperty('--columns', columns);
    this.element = h(
      'div',
      { class: 'runs' },
      h(
        'div',
        { class: 'filters' },
        this.query_,
        this.depth_,
        this.status_,
        this.count_,
        button('CSV', 'Save the filtered runs', () => this.save()),
      ),
      this.scroller_,
    );
    for (const input of [this.query_, this.depth_, this.status_]) {
      input.addEventListener('input', () => this.refresh());
    }
    this.scroller_.addEventListener('scroll', () => this.draw(), { passive: true });
    this.scroller_.addEventListener('keydown', (event) => this.on_key(event));
    new ResizeObserver(() => this.draw(true)).observe(this.scroller_);
    store.listen(() => this.refresh());
    this.shown_ = (run) => store.shown(run.layers);
    this.refresh();
  }

  private readonly shown_: (run: Run) => boolean;

  /// A plain table of the present view for paper.
  printed(): HTMLElement {
    const rows = this.rows_.slice(0, kMostPrinted);
    const rest = this.rows_.length - rows.length;
    return h(
      'div',
      { class: 'printed-runs' },
      h(
        'table',
        {},
        h('thead', {}, h('tr', {}, ...kColumns.map((column) => h('th', {}, column.title)))),
        h(
          'tbody',
          {},
          ...rows.map((run) =>
            h(
              'tr',
              {},
              ...kColumns.map((column) =>
                h('td', { class: column.numeric ? 'number' : '' }, column.show(run)),
              ),
            ),
          ),
        ),
      ),
      rest > 0
        ? h('p', {}, `${plural(rest, 'more run')} in the interactive table and its CSV.`)
        : null,
    );
  }

  private make_heads(): HTMLElement[] {
    for (const column of kColumns) {
      const sort = button(column.title, `Sort by ${column.title.toLowerCase()}`, () => {
        const again = this.sort_.column === column;
        this.sort_ = { column, descending: again && !this.sort_.descending };
        this.refresh();
      });
      this.heads_.push(
        h(
          'div',
          {
            role: 'columnheader',
            class: column.numeric ? 'number' : '',
            'data-column': column.name,
          },
          sort,
        ),
      );
    }
    return this.heads_;
  }

  /// The runs have changed: shows the new order and numbers at the reader's scroll position.
  update(): void {
    const known = new Set([...this.status_.options].map((option) => option.value));
    for (const status of new Set(this.model_.study.runs.map((run) => run.status))) {
      if (!known.has(status)) this.status_.append(h('option', { value: status }, status));
    }
    this.refresh(true);
  }

  private refresh(keep_place = false): void {
    const matches = parse_filter(this.query_.value);
    const depth = this.depth_.value;
    const status = this.status_.value;
    const all = this.model_.study.runs;
    const kept = all.filter(
      (run) =>
        this.shown_(run) &&
        (depth === '' || String(run.layers) === depth) &&
        (status === '' || run.status === status) &&
        matches(run),
    );
    this.rows_ = sorted(kept, this.sort_.column, this.sort_.descending);
    this.count_.textContent =
      kept.length === all.length
        ? plural(all.length, 'run')
        : `${whole(kept.length)} of ${plural(all.length, 'run')}`;
    this.scroller_.setAttribute('aria-rowcount', String(kept.length + 1));
    kColumns.forEach((column, i) => {
      const mine = this.sort_.column === column;
      const way = mine ? (this.sort_.descending ? 'descending' : 'ascending') : 'none';
      this.heads_[i]!.setAttribute('aria-sort', way);
    });
    this.body_.style.height = `${Math.max(1, this.rows_.length) * kRow}px`;
    if (!keep_place) this.scroller_.scrollTop = 0;
    this.draw(true);
  }

  private draw(again = false): void {
    const visible = Math.ceil(this.scroller_.clientHeight / kRow) + 1;
    const first = Math.max(0, Math.floor(this.scroller_.scrollTop / kRow) - 4);
    if (!again && first === this.first_) return;
    this.first_ = first;
    const rows = this.rows_
      .slice(first, first + visible + 8)
      .map((run, i) => make_row(run, first + i));
    this.body_.replaceChildren(...rows);
    if (this.rows_.length === 0) {
      this.body_.append(
        h(
          'div',
          { class: 'quiet nothing' },
          this.model_.study.runs.length === 0
            ? 'There are no runs yet.'
            : 'No run matches the filter.',
        ),
      );
    }
  }

  private on_key(event: KeyboardEvent): void {
    if (event.target !== this.scroller_) return;
    if (event.key === 'Home') this.scroller_.scrollTop = 0;
    else if (event.key === 'End') this.scroller_.scrollTop = this.scroller_.scrollHeight;
    else return;
    event.preventDefault();
  }

  private save(): void {
    save_csv('runs.csv', {
      header: kFields.map((field) => field.name),
      rows: this.rows_.map((run) => kFields.map((field) => field.value(run))),
    });
  }
}

function make_row(run: Run, index: number): HTMLElement {
  const cells = kColumns.map((column) => {
    const text = column.show(run);
    return h(
      'div',
      {
        role: 'cell',
        class: column.numeric ? 'number' : 'text',
        title: column.numeric ? null : text,
      },
      text,
    );
  });
  return h(
    'div',
    {
      role: 'row',
      class: is_finished(run) ? 'row' : 'row bad',
      'aria-rowindex': index + 2,
      style: `top:${index * kRow}px`,
    },
    ...cells,
  );
}

function select(name: string, all: string, options: [string, string][]): HTMLSelectElement {
  return h(
    'select',
    { 'aria-label': name },
    h('option', { value: '' }, all),
    ...options.map(([value, text]) => h('option', { value }, text)),
  );
}
