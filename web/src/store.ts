// What the reader has switched: which depths are shown. Charts and table listen.
export class Store {
  private hidden_ = new Set<number>();
  private listeners_: (() => void)[] = [];

  constructor(readonly depths: number[]) {}

  shown(depth: number): boolean {
    return !this.hidden_.has(depth);
  }

  toggle(depth: number): void {
    if (!this.hidden_.delete(depth)) this.hidden_.add(depth);
    this.notify();
  }

  /// Shows this depth alone; everything again when it already is alone.
  solo(depth: number): void {
    const alone = this.shown(depth) && this.hidden_.size === this.depths.length - 1;
    this.hidden_ = new Set(alone ? [] : this.depths.filter((other) => other !== depth));
    this.notify();
  }

  show_all(): void {
    this.hidden_.clear();
    this.notify();
  }

  get any_hidden(): boolean {
    return this.hidden_.size > 0;
  }

  listen(listener: () => void): void {
    this.listeners_.push(listener);
  }

  private notify(): void {
    for (const listener of this.listeners_) listener();
  }
}
