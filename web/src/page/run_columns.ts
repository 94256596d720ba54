// The fields of a run as the table shows, sorts and filters them. The list of fields, their titles
// and their formats are in schema/report.schema.json.
import type { Run, RunField, Value } from '../document';
import { duration, fixed, flops, si, whole } from '../format';
import { kRunFields, type RunFormat } from '../generated/report_schema';

const kWrite: Record<RunFormat, (value: number) => string> = {
  plain: String,
  text: String,
  whole,
  si,
  flops,
  duration,
  loss: (value) => fixed(value, 4),
};

export interface Field {
  name: RunField;
  numeric: boolean;
  value: (run: Run) => Value;
  show: (run: Run) => string;
}

export interface Column extends Field {
  title: string;
  share: number; // relative width
}

function show(run: Run, name: RunField, format: RunFormat): string {
  const value = run.fields[name];
  if (name === 'status' && run.reason) return `${run.status}: ${run.reason}`;
  if (value === null) return '–';
  return typeof value === 'number' ? kWrite[format](value) : value;
}

const field = ({ name, format, numeric }: (typeof kRunFields)[number]): Field => ({
  name,
  numeric,
  value: (run) => run.fields[name],
  show: (run) => show(run, name, format),
});

/// What a filter may compare and a CSV holds.
export const kFields: Field[] = kRunFields.map(field);

export const kColumns: Column[] = kRunFields.flatMap((entry) =>
  entry.column ? [{ ...field(entry), ...entry.column }] : [],
);

/// Missing values go last whichever way is sorted.
export function sorted(runs: Run[], column: Field, descending: boolean): Run[] {
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
