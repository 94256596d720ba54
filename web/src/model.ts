// What the charts draw: the finished runs grouped by depth and size, averaged over seeds, and the
// best loss of any depth at equal size.
//
//   mean(L, N) = average over seeds;  band = least to greatest seed
//   excess(L, N) = mean(L, N) / min over depths L' of mean(L', N) - 1, other depths interpolated
//   linearly in ln N between their own sizes, never beyond them.
import { bisector, group, max, mean, rollup } from 'd3-array';
import type { Run, Study } from './document';

export interface Cell {
  layers: number;
  width: number | null;
  params: number;
  runs: Run[];
  value: number;
  low: number;
  high: number;
  /// No other depth was trained at this size.
  alone?: boolean;
}

export type Measure = 'loss' | 'bits_per_byte';

export interface Model {
  study: Study;
  depths: number[];
  by_id: Map<string, Run>;
  finished: Run[];
  /// Finished runs with the most tokens of their shape: what is compared at equal size.
  longest: Run[];
  bad: Run[];
}

export function make_model(study: Study): Model {
  const depths = [...new Set(study.runs.map((run) => run.layers))].sort((a, b) => a - b);
  const by_id = new Map(study.runs.map((run) => [run.id, run]));
  const finished = study.runs.filter((run) => run.loss !== null && is_finished(run));
  const bad = study.runs.filter((run) => !is_finished(run));
  return { study, depths, by_id, finished, longest: longest_runs(finished), bad };
}

const shape_of = (run: Run): string => `${run.layers}/${run.width}/${run.params}`;

/// One run may serve several token budgets; losses at equal size are compared at the largest.
function longest_runs(runs: Run[]): Run[] {
  const most = rollup(runs, (same) => max(same, (run) => run.tokens ?? 0)!, shape_of);
  return runs.filter((run) => (run.tokens ?? 0) === most.get(shape_of(run)));
}

/// A run that stopped early is finished too; other programs have their own words.
const kFinished = ['finished', 'early_stopped', 'done', 'complete', 'completed'];

/// A run without a status counts by its loss.
export const is_finished = (run: Run): boolean =>
  run.status === 'unknown'
    ? run.loss !== null
    : kFinished.includes(run.status.toLowerCase());

/// Cells per depth, sizes ascending.
export function cells_by_depth(model: Model, measure: Measure): Map<number, Cell[]> {
  const result = new Map<number, Cell[]>();
  const usable = model.longest.filter((run) => run.params !== null && run[measure] !== null);
  for (const [depth, runs] of group(usable, (run) => run.layers)) {
    const cells: Cell[] = [];
    for (const [, same] of group(runs, shape_of)) {
      const first = same[0]!;
      const values = same.map((run) => run[measure]!);
      cells.push({
        layers: depth,
        width: first.width,
        params: first.params!,
        runs: same,
        value: mean(values)!,
        low: Math.min(...values),
        high: Math.max(...values),
      });
    }
    cells.sort((a, b) => a.params - b.params);
    result.set(depth, cells);
  }
  return result;
}

const by_params = bisector((cell: Cell) => cell.params);

/// The loss of one depth at size N, or null outside its own sizes.
export function value_at(cells: Cell[], params: number): number | null {
  const upper = cells[by_params.left(cells, params)];
  if (!upper) return null;
  if (upper.params === params) return upper.value;
  const lower = cells[by_params.left(cells, params) - 1];
  if (!lower) return null;
  const share = Math.log(params / lower.params) / Math.log(upper.params / lower.params);
  return lower.value + share * (upper.value - lower.value);
}

/// The least loss of any depth at size N, or null where only one depth was trained: one alone is
/// no comparison.
export function best_at(all: Map<number, Cell[]>, params: number): number | null {
  let best = Infinity;
  let depths = 0;
  for (const cells of all.values()) {
    const value = value_at(cells, params);
    if (value === null) continue;
    ++depths;
    best = Math.min(best, value);
  }
  return depths > 1 ? best : null;
}

/// The cells with loss replaced by its excess over the best depth of equal size. A size that one
/// depth alone was trained at has nothing to be compared with: left out, or kept at zero as `alone`.
export function excess_cells(all: Map<number, Cell[]>, keep_alone = false): Map<number, Cell[]> {
  const result = new Map<number, Cell[]>();
  for (const [depth, cells] of all) {
    const compared = cells.flatMap((cell): Cell[] => {
      const best = best_at(all, cell.params);
      if (best === null) return keep_alone ? [{ ...cell, value: 0, low: 0, high: 0, alone: true }] : [];
      const over = (value: number) => value / best - 1;
      return [{ ...cell, value: over(cell.value), low: over(cell.low), high: over(cell.high) }];
    });
    if (compared.length > 0) result.set(depth, compared);
  }
  return result;
}
