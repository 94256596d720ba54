// The filter language of the table: words that must occur (in id, status or reason), and
// comparisons, all of which must hold: `diverged`, `layers=6`, `width>=256`, `params<2M`.
import type { Run } from '../document';
import { kFields } from './run_columns';

export type Filter = (run: Run) => boolean;

const kSuffix: Record<string, number> = { k: 1e3, m: 1e6, b: 1e9, t: 1e12 };

function read_number(text: string): number | null {
  const match = /^(-?[\d.]+(?:e[+-]?\d+)?)([kmbt]?)$/i.exec(text);
  if (!match) return null;
  const value = Number(match[1]) * (kSuffix[match[2]!.toLowerCase()] ?? 1);
  return Number.isFinite(value) ? value : null;
}

function compare(left: number, sign: string, right: number): boolean {
  if (sign === '=') return left === right || Math.abs(left - right) <= 1e-9 * Math.abs(right);
  if (sign === '<') return left < right;
  if (sign === '<=') return left <= right;
  if (sign === '>') return left > right;
  return left >= right;
}

function condition(word: string): Filter {
  const match = /^([a-z_]+)(<=|>=|=|<|>)(.+)$/i.exec(word);
  const column = match && kFields.find((entry) => entry.name === match[1]!.toLowerCase());
  if (!match || !column) {
    const wanted = word.toLowerCase();
    return (run) => `${run.id} ${run.status} ${run.reason}`.toLowerCase().includes(wanted);
  }
  const sign = match[2]!;
  const number = read_number(match[3]!);
  const text = match[3]!.toLowerCase();
  return (run) => {
    const value = column.value(run);
    if (value === null) return false;
    if (typeof value === 'number' && number !== null) return compare(value, sign, number);
    return sign === '=' && String(value).toLowerCase() === text;
  };
}

export function parse_filter(text: string): Filter {
  const conditions = text.trim().split(/\s+/).filter(Boolean).map(condition);
  return (run) => conditions.every((holds) => holds(run));
}
