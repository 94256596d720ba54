// Numbers as people read them: 1.3M parameters, 2.4e+17 FLOPs, 3 min 20 s.
import { format } from 'd3-format';

const kMissing = '–';
const three_digits = format('.3~s');

/// 1300000 -> "1.3M"; SI letters, with B for 10^9 as the field writes it.
export function si(value: number | null): string {
  if (value === null) return kMissing;
  if (value !== 0 && Math.abs(value) < 1) return format('.3~g')(value);
  return three_digits(value).replace('G', 'B').replace('k', 'K');
}

export const whole = (value: number | null): string =>
  value === null ? kMissing : format(',d')(value);

export const fixed = (value: number | null, digits: number): string =>
  value === null ? kMissing : value.toFixed(digits).replace('-', '−');

export const flops = (value: number | null): string =>
  value === null ? kMissing : value.toExponential(2).replace('e+', 'e');

export function percent(value: number | null, digits = 2): string {
  if (value === null) return kMissing;
  return `${value < 0 ? '−' : '+'}${Math.abs(100 * value).toFixed(digits)} %`;
}

export function duration(seconds: number | null): string {
  if (seconds === null) return kMissing;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  if (seconds < 2 * 86400) return `${(seconds / 3600).toFixed(1)} h`;
  return `${(seconds / 86400).toFixed(1)} days`;
}

export const with_error = (value: number, error: number | null, digits: number): string =>
  error === null ? fixed(value, digits) : `${fixed(value, digits)} ± ${fixed(error, digits)}`;

export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${whole(count)} ${count === 1 ? one : many}`;

export const layers = (depth: number): string => (depth === 1 ? '1 layer' : `${depth} layers`);
