// The columns of the table of runs: how each is shown, sorted and compared in a filter.
import type { Run } from '../document';
import { duration, fixed, flops, si, whole } from '../format';

export interface Column {
  name: string;
  title: string;
  /// Relative width.
  share: number;
  numeric: boolean;
  value: (run: Run) => number | string | null;
  show: (run: Run) => string;
}

const column = (
  name: string,
  title: string,
  share: number,
  value: Column['value'],
  show: (run: Run) => string,
  numeric = true,
): Column => ({ name, title, share, value, show, numeric });

export const kColumns: Column[] = [
  column(
    'id',
    'Run',
    1.5,
    (r) => r.id,
    (r) => r.id || '–',
    false,
  ),
  column(
    'layers',
    'Layers',
    0.8,
    (r) => r.layers,
    (r) => String(r.layers),
  ),
  column(
    'width',
    'Width',
    0.8,
    (r) => r.width,
    (r) => whole(r.width),
  ),
  column(
    'heads',
    'Heads',
    0.8,
    (r) => r.heads,
    (r) => whole(r.heads),
  ),
  column(
    'params',
    'Params',
    1,
    (r) => r.params,
    (r) => si(r.params),
  ),
  column(
    'tokens',
    'Tokens',
    1,
    (r) => r.tokens,
    (r) => si(r.tokens),
  ),
  column(
    'seed',
    'Seed',
    0.7,
    (r) => number_or_text(r.seed),
    (r) => r.seed || '–',
  ),
  column(
    'loss',
    'Loss',
    0.9,
    (r) => r.loss,
    (r) => fixed(r.loss, 4),
  ),
  column(
    'bits_per_byte',
    'Bits/byte',
    1,
    (r) => r.bits_per_byte,
    (r) => fixed(r.bits_per_byte, 4),
  ),
  column(
    'seconds',
    'Time',
    1.1,
    (r) => r.seconds,
    (r) => duration(r.seconds),
  ),
  column(
    'tokens_per_second',
    'Tokens/s',
    1,
    (r) => r.tokens_per_second,
    (r) => si(r.tokens_per_second),
  ),
  column(
    'flops',
    'FLOPs',
    1,
    (r) => r.flops,
    (r) => flops(r.flops),
  ),
  column(
    'status',
    'Status',
    1.6,
    (r) => r.status,
    (r) => (r.reason ? `${r.status}: ${r.reason}` : r.status),
    false,
  ),
];

function number_or_text(text: string): number | string | null {
  if (text === '') return null;
  const value = Number(text);
  return Number.isFinite(value) ? value : text;
}

/// Missing values go last whichever way is sorted.
export function sorted(runs: Run[], column: Column, descending: boolean): Run[] {
  const keyed = runs.map((run, index) => ({ run, index, key: column.value(run) }));
  const way = descending ? -1 : 1;
  keyed.sort((a, b) => {
    if (a.key === null || b.key === null) {
      return Number(a.key === null) - Number(b.key === null) || a.index - b.index;
    }
    const order =
      typeof a.key === 'number' && typeof b.key === 'number'
        ? a.key - b.key
        : String(a.key) < String(b.key)
          ? -1
          : String(a.key) > String(b.key)
            ? 1
            : 0;
    return way * order || a.index - b.index;
  });
  return keyed.map((entry) => entry.run);
}
