// The value under the pointer: the nearest target gets a ring and a small card. Arrow keys walk the
// same targets in order, and the card is announced to screen readers.
import { h, s } from '../dom';
import type { View } from './plot';

export interface Target {
  x: number;
  y: number;
  colour: string;
  title: string;
  lines: [string, string][];
  /// Drawn stronger while this target is chosen.
  highlight?: (view: View) => SVGElement;
}

const kReach = 40;

export class Tooltip {
  private readonly card_: HTMLElement;
  private ring_: SVGElement | null = null;
  private targets_: Target[] = [];
  private pixels_: Float64Array | null = null;
  private view_: View | null = null;
  private svg_: SVGSVGElement | null = null;
  private chosen_ = -1;

  constructor(private readonly stage_: HTMLElement) {
    this.card_ = h('div', { class: 'tip', role: 'status', 'aria-live': 'polite', hidden: true });
    stage_.append(this.card_);
  }

  attach(svg: SVGSVGElement, view: View, targets: Target[]): void {
    this.svg_ = svg;
    this.view_ = view;
    this.targets_ = targets;
    this.pixels_ = null;
    this.chosen_ = -1;
    this.hide();
    const point_at = (event: PointerEvent) => {
      if (event.buttons !== 0 && event.pointerType === 'mouse') return;
      const box = svg.getBoundingClientRect();
      const scale = view.width / box.width;
      this.choose(
        this.nearest((event.clientX - box.left) * scale, (event.clientY - box.top) * scale),
      );
    };
    svg.addEventListener('pointermove', point_at);
    // A finger that taps leaves at once; its card stays until the next tap.
    svg.addEventListener('pointerdown', point_at);
    svg.addEventListener('pointerleave', (event) => {
      if (event.pointerType === 'mouse') this.hide();
    });
    svg.addEventListener('blur', () => this.hide());
    svg.addEventListener('keydown', (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step === undefined || targets.length === 0) return;
      event.preventDefault();
      this.walk(step);
    });
  }

  hide(): void {
    this.card_.hidden = true;
    this.ring_?.remove();
    this.ring_ = null;
  }

  private walk(step: number): void {
    const count = this.targets_.length;
    for (let tries = 0; tries < count; ++tries) {
      this.chosen_ = (this.chosen_ + step + count) % count;
      if (this.visible(this.chosen_)) break;
    }
    this.choose(this.chosen_);
  }

  private positions(): Float64Array {
    if (this.pixels_) return this.pixels_;
    const pixels = new Float64Array(2 * this.targets_.length);
    this.targets_.forEach((target, i) => {
      pixels[2 * i] = this.view_!.x(target.x);
      pixels[2 * i + 1] = this.view_!.y(target.y);
    });
    this.pixels_ = pixels;
    return pixels;
  }

  private visible(index: number): boolean {
    const { area } = this.view_!;
    const x = this.positions()[2 * index]!;
    const y = this.positions()[2 * index + 1]!;
    return x >= area.left - 1 && x <= area.right + 1 && y >= area.top - 1 && y <= area.bottom + 1;
  }

  private nearest(x: number, y: number): number {
    const pixels = this.positions();
    let best = -1;
    let least = kReach * kReach;
    for (let i = 0; i < this.targets_.length; ++i) {
      const distance = (pixels[2 * i]! - x) ** 2 + (pixels[2 * i + 1]! - y) ** 2;
      if (distance < least && this.visible(i)) {
        least = distance;
        best = i;
      }
    }
    return best;
  }

  private choose(index: number): void {
    this.hide();
    const target = this.targets_[index];
    if (!target) return;
    this.chosen_ = index;
    const x = this.positions()[2 * index]!;
    const y = this.positions()[2 * index + 1]!;
    this.ring_ = s(
      'g',
      { class: 'transient' },
      target.highlight?.(this.view_!),
      s('circle', {
        cx: x,
        cy: y,
        r: 6.5,
        style: `fill:none;stroke:${target.colour};stroke-width:2.5`,
      }),
    );
    this.svg_!.append(this.ring_);
    this.show_card(target, x, y);
  }

  private show_card(target: Target, x: number, y: number): void {
    const rows = target.lines.map(([name, value]) =>
      h('div', { class: 'tip-row' }, h('span', {}, name), h('b', {}, value)),
    );
    this.card_.replaceChildren(
      h('div', { class: 'tip-title', style: `--mark:${target.colour}` }, target.title),
      ...rows,
    );
    this.card_.hidden = false;
    const scale = this.svg_!.getBoundingClientRect().width / this.view_!.width;
    const width = this.card_.offsetWidth;
    const height = this.card_.offsetHeight;
    const room = this.stage_.clientWidth;
    const left = x * scale + 14 + width > room ? x * scale - 14 - width : x * scale + 14;
    const across = Math.max(0, Math.round(left));
    const down = Math.max(0, Math.round(y * scale - height - 10));
    this.card_.style.transform = `translate(${across}px,${down}px)`;
  }
}
