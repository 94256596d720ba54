// Where the reader has put the sliders and switches, and what the tables say there. The sliders
// stop only where the planner was asked, so every number is the planner's own.
import type { BudgetTable, MapDocument, Model, PlanRow, StopPlan } from '../generated/map_schema';

export type Count = 'parameters' | 'flops';
export type Colouring = 'none' | 'train' | 'decode';

export class MapState {
  count: Count;
  tokens: number;
  device: number;
  colouring: Colouring = 'none';
  private readonly budget_: Record<Count, number>;
  private readonly hidden_: Set<number>;
  private readonly listeners_: (() => void)[] = [];
  private readonly asked_ = new Set<string>();

  /// `ask` fetches a row that the document lacks (fathom serve).
  constructor(
    readonly map: MapDocument,
    private readonly ask: ((count: Count, ratio: number) => Promise<PlanRow>) | null = null,
  ) {
    const { start } = map;
    this.count = start.count;
    this.tokens = start.tokens;
    this.device = Math.max(
      0,
      map.hardware.findIndex((device) => device.name === start.hardware),
    );
    this.budget_ = { parameters: 0, flops: 0 };
    this.budget_[start.count] = start.budget;
    this.follow(start.count === 'parameters' ? 'flops' : 'parameters');
    // Rules of thumb would bury the laws; published practice stays as their counterpart.
    this.hidden_ = new Set(
      map.laws.flatMap((law, i) => (law.fitted || law.name === 'practice' ? [] : [i])),
    );
  }

  get table(): BudgetTable {
    return this.count === 'flops' ? this.map.by_flops : this.map.by_parameters;
  }

  get budget(): number {
    return this.budget_[this.count];
  }

  set budget(index: number) {
    this.budget_[this.count] = index;
  }

  /// Null where no shape of this budget meets the constraints.
  get plan(): StopPlan | null {
    return this.table.plans[this.tokens]?.[this.budget] ?? null;
  }

  /// The plan of this stop has been asked for and has not come yet.
  get waiting(): boolean {
    return this.table.plans[this.tokens] === null;
  }

  /// The plans of all sizes at this many tokens per parameter.
  get sizes(): StopPlan[] {
    return (this.map.by_parameters.plans[this.tokens] ?? []).filter((plan) => plan !== null);
  }

  get at_start(): boolean {
    const { start, hardware } = this.map;
    return (
      this.count === start.count &&
      this.budget === start.budget &&
      this.tokens === start.tokens &&
      hardware[this.device]!.name === start.hardware
    );
  }

  /// Counts the budget the other way, from the stop that is nearest.
  switch_count(count: Count): void {
    if (count === this.count) return;
    this.follow(count);
    this.count = count;
    this.notify();
  }

  law_shown(index: number): boolean {
    return !this.hidden_.has(index);
  }

  toggle_law(index: number): void {
    if (!this.hidden_.delete(index)) this.hidden_.add(index);
    this.notify();
  }

  /// Released models whose size is nearest, within a third.
  neighbours(most: number): Model[] {
    const plan = this.plan;
    if (!plan) return [];
    const embeddings = this.map.counts_embeddings;
    const off = (model: Model) =>
      Math.abs(Math.log((embeddings ? model.total : model.non_embedding) / plan.parameters));
    return this.map.models
      .filter((model) => !model.sweep && off(model) < Math.log(4 / 3))
      .sort((a, b) => off(a) - off(b))
      .slice(0, most);
  }

  listen(listener: () => void): void {
    this.listeners_.push(listener);
  }

  notify(): void {
    for (const count of ['parameters', 'flops'] as Count[]) this.fetch_row(count);
    for (const listener of this.listeners_) listener();
  }

  private fetch_row(count: Count): void {
    const table = count === 'flops' ? this.map.by_flops : this.map.by_parameters;
    const tokens = this.tokens;
    const key = `${count} ${tokens}`;
    if (!this.ask || table.plans[tokens] !== null || this.asked_.has(key)) return;
    this.asked_.add(key);
    this.ask(count, this.map.tokens_per_parameter[tokens]!).then(
      (row) => {
        table.plans[tokens] = row;
        this.notify();
      },
      () => this.asked_.delete(key), // asked again at the next move
    );
  }

  /// Moves the slider of `count` to the stop nearest the present plan.
  private follow(count: Count): void {
    const plan = this.plan;
    if (!plan) return;
    const table = count === 'flops' ? this.map.by_flops : this.map.by_parameters;
    const distance = (stop: number) => Math.abs(Math.log(stop / plan[count]));
    this.budget_[count] = table.stops.reduce(
      (best, stop, i) => (distance(stop) < distance(table.stops[best]!) ? i : best),
      0,
    );
  }
}

/// The width that spends a budget at a depth: c L d^2 + e d = N (src/laws/budget.cpp; the browser
/// test compares the two).
export function width_at(map: MapDocument, plan: StopPlan, layers: number): number {
  const e = map.embedding_rows;
  const a = plan.block_coefficient * layers;
  return (2 * plan.parameters) / (e + Math.sqrt(e * e + 4 * a * plan.parameters));
}
