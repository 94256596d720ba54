// Zooming: a rectangle dragged with the mouse, + and - on the keyboard, ctrl + wheel.
import { s } from '../dom';
import type { Tooltip } from './tooltip';
import type { View } from './plot';

export interface Window {
  x: [number, number];
  y: [number, number];
}

const kLeastDrag = 6;

export class Zoom {
  window: Window | null = null;
  private inverse_: (pixels: Window) => Window = (pixels) => pixels;
  private view_: View | null = null;

  constructor(private readonly changed_: () => void) {}

  clear(): void {
    this.window = null;
  }

  reset(): void {
    this.clear();
    this.changed_();
  }

  attach(svg: SVGSVGElement, view: View, inverse: (pixels: Window) => Window, tip: Tooltip): void {
    this.view_ = view;
    this.inverse_ = inverse;
    this.attach_drag(svg, view, tip);
    svg.addEventListener('dblclick', () => this.reset());
    svg.addEventListener('keydown', (event) => {
      if (event.key === '+' || event.key === '=') this.scale(0.7, null);
      else if (event.key === '-') this.scale(1 / 0.7, null);
      else if (event.key === '0' || event.key === 'Escape') this.reset();
      else return;
      event.preventDefault();
    });
    svg.addEventListener(
      'wheel',
      (event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        const box = svg.getBoundingClientRect();
        this.scale(event.deltaY < 0 ? 0.85 : 1 / 0.85, [
          event.clientX - box.left,
          event.clientY - box.top,
        ]);
      },
      { passive: false },
    );
  }

  /// Shrinks (share < 1) or widens the window about a pixel, the middle by default.
  private scale(share: number, about: [number, number] | null): void {
    const { area } = this.view_!;
    const [cx, cy] = about ?? [(area.left + area.right) / 2, (area.top + area.bottom) / 2];
    const around = (centre: number, low: number, high: number): [number, number] => [
      centre - (centre - low) * share,
      centre + (high - centre) * share,
    ];
    this.set({ x: around(cx, area.left, area.right), y: around(cy, area.top, area.bottom) });
  }

  private set(pixels: Window): void {
    const next = this.inverse_(pixels);
    const sane = [...next.x, ...next.y].every(Number.isFinite);
    if (!sane || next.x[0] >= next.x[1] || next.y[0] >= next.y[1]) return;
    this.window = next;
    this.changed_();
  }

  private attach_drag(svg: SVGSVGElement, view: View, tip: Tooltip): void {
    const { area } = view;
    const inside = (event: PointerEvent): [number, number] => {
      const box = svg.getBoundingClientRect();
      const scale = view.width / box.width;
      return [
        Math.min(area.right, Math.max(area.left, (event.clientX - box.left) * scale)),
        Math.min(area.bottom, Math.max(area.top, (event.clientY - box.top) * scale)),
      ];
    };
    svg.addEventListener('pointerdown', (event) => {
      if (event.button !== 0 || event.pointerType === 'touch') return;
      const start = inside(event);
      const box = s('rect', { class: 'transient zoom-box' });
      svg.append(box);
      svg.setPointerCapture(event.pointerId);
      const move = (moved: PointerEvent) => {
        tip.hide();
        const now = inside(moved);
        box.setAttribute('x', String(Math.min(start[0], now[0])));
        box.setAttribute('y', String(Math.min(start[1], now[1])));
        box.setAttribute('width', String(Math.abs(start[0] - now[0])));
        box.setAttribute('height', String(Math.abs(start[1] - now[1])));
      };
      const end = (ended: PointerEvent) => {
        svg.removeEventListener('pointermove', move);
        box.remove();
        const now = inside(ended);
        const wide = Math.abs(start[0] - now[0]) >= kLeastDrag;
        const high = Math.abs(start[1] - now[1]) >= kLeastDrag;
        if (!wide || !high || ended.type === 'pointercancel') return;
        this.set({
          x: [Math.min(start[0], now[0]), Math.max(start[0], now[0])],
          y: [Math.min(start[1], now[1]), Math.max(start[1], now[1])],
        });
      };
      svg.addEventListener('pointermove', move);
      svg.addEventListener('pointerup', end, { once: true });
      svg.addEventListener('pointercancel', end, { once: true });
    });
  }
}
