// One chart: frame, axes, legend, hover, zoom, keyboard and saving. What is drawn inside comes from
// a `content` function, called again whenever the size, the zoom or the shown depths change.
//
// Mouse: move for values, drag a rectangle to zoom, double click to go back. Keyboard: arrows walk
// the points, + and - zoom, 0 goes back. A chart is drawn when it comes near the screen and
// redrawn only there, so that a report of ten thousand runs opens and answers at once.
import { button, h, s } from '../dom';
import type { CsvTable } from '../export/csv';
import { save_menu } from '../export/save_menu';
import { draw_axes, make_scale, type Area, type AxisSpec, type Scale } from './axes';
import { Zoom, type Window } from './zoom';
import { Tooltip, type Target } from './tooltip';

export interface View {
  x: Scale;
  y: Scale;
  area: Area;
  width: number;
  narrow: boolean;
  /// Clipped to the area.
  inside: SVGGElement;
  /// Not clipped: direct labels.
  over: SVGGElement;
}

export interface Content {
  x: AxisSpec;
  y: AxisSpec;
  draw(view: View): void;
  targets: Target[];
  table: CsvTable;
  /// Set when there is nothing to draw: the reason, in words.
  empty?: string;
}

export interface PlotOptions {
  id: string;
  title: string;
  /// What the picture shows, for readers who cannot see it.
  describe: string;
  height: number;
  label_room: number;
  content: () => Content;
  controls?: HTMLElement[];
  /// Of what is drawn now.
  note?: string | (() => string);
}

const kPaperWidth = 680;
const kPaperHeight = 330;

export class Plot {
  readonly figure: HTMLElement;
  private readonly stage_: HTMLElement;
  private svg_: SVGSVGElement | null = null;
  private readonly zoom_: Zoom;
  private readonly tooltip_: Tooltip;
  private readonly reset_: HTMLButtonElement;
  private readonly note_ = h('figcaption', {});
  private width_ = 0;
  private content_: Content | null = null;
  private near_ = false;
  private stale_ = true;

  constructor(private readonly options_: PlotOptions) {
    this.stage_ = h('div', { class: 'stage', style: `min-height:${options_.height}px` });
    this.tooltip_ = new Tooltip(this.stage_);
    this.zoom_ = new Zoom(() => this.render());
    this.reset_ = button('Reset zoom', 'Show everything again (0)', () => this.zoom_.reset());
    this.reset_.hidden = true;
    const tools = h('div', { class: 'tools' }, ...(options_.controls ?? []), this.reset_);
    tools.append(
      save_menu(
        options_.id,
        options_.title,
        () => this.drawn(),
        () => this.content().table,
      ),
    );
    const title_id = `${options_.id}-title`;
    this.figure = h(
      'figure',
      { class: 'plot', id: options_.id, 'aria-labelledby': title_id },
      h('div', { class: 'plot-head' }, h('h3', { id: title_id }, options_.title), tools),
      this.stage_,
      options_.note ? this.note_ : null,
    );
    this.write_note();
    this.watch();
  }

  /// The content changed: depths toggled, measure chosen.
  update(reset_zoom = false): void {
    this.content_ = null;
    this.write_note();
    if (reset_zoom) this.zoom_.clear();
    this.stale_ = true;
    if (this.near_) this.render();
  }

  /// Draws now even when it is out of view.
  force(): void {
    if (this.stale_) this.render();
  }

  /// Draws for paper, at the width of an A4 page's text, so that letters keep their size.
  print(): void {
    this.render(kPaperWidth, Math.min(kPaperHeight, this.options_.height));
    this.stale_ = true;
  }

  private write_note(): void {
    const { note } = this.options_;
    this.note_.textContent = typeof note === 'function' ? note() : (note ?? '');
  }

  private watch(): void {
    const near = new IntersectionObserver(
      (entries) => {
        this.near_ = entries[entries.length - 1]!.isIntersecting;
        if (this.near_) this.force();
      },
      { rootMargin: '300px' },
    );
    near.observe(this.stage_);
    new ResizeObserver(() => {
      const width = Math.round(this.stage_.clientWidth);
      if (width === 0 || Math.abs(width - this.width_) <= 1) return;
      this.stale_ = true;
      if (this.near_) this.render();
    }).observe(this.stage_);
  }

  private content(): Content {
    this.content_ ??= this.options_.content();
    return this.content_;
  }

  private drawn(): SVGSVGElement {
    this.force();
    return this.svg_!;
  }

  private render(
    width = Math.round(this.stage_.clientWidth) || kPaperWidth,
    height = this.options_.height,
  ): void {
    this.stale_ = false;
    const content = this.content();
    this.width_ = width;
    const { svg, view } = this.frame(content, height);
    if (content.empty) {
      svg.append(empty_text(view.area, content.empty));
    } else {
      content.draw(view);
    }
    const had_focus = document.activeElement === this.svg_;
    if (this.svg_) this.svg_.replaceWith(svg);
    else this.stage_.append(svg);
    this.svg_ = svg;
    this.reset_.hidden = this.zoom_.window === null;
    this.tooltip_.attach(svg, view, content.targets);
    if (!content.empty)
      this.zoom_.attach(svg, view, this.inverse(content, view.area), this.tooltip_);
    if (had_focus) svg.focus();
  }

  private frame(content: Content, height: number): { svg: SVGSVGElement; view: View } {
    const width = this.width_;
    const narrow = width < 560;
    const room = narrow ? 12 : this.options_.label_room;
    const area: Area = { left: 52, top: 28, right: width - room, bottom: height - 46 };
    const { x: x_spec, y: y_spec } = this.zoomed(content);
    const x = make_scale(x_spec, [area.left, area.right]).map;
    const y = make_scale(y_spec, [area.bottom, area.top]).map;
    const svg = s('svg', {
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: 'img',
      tabindex: 0,
      'aria-label': `${this.options_.title}. ${this.options_.describe}`,
      'font-family': 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif',
    });
    const clip = `${this.options_.id}-clip`;
    svg.append(
      s('clipPath', { id: clip }, area_rect(area, 6)),
      draw_axes(area, x_spec, y_spec, x, y),
    );
    const inside = s('g', { 'clip-path': `url(#${clip})` });
    const over = s('g');
    svg.append(inside, over);
    return { svg, view: { x, y, area, width, narrow, inside, over } };
  }

  private zoomed(content: Content): { x: AxisSpec; y: AxisSpec } {
    const window = this.zoom_.window;
    if (window === null) return { x: content.x, y: content.y };
    return { x: { ...content.x, domain: window.x }, y: { ...content.y, domain: window.y } };
  }

  private inverse(content: Content, area: Area): (from: Window) => Window {
    const { x: x_spec, y: y_spec } = this.zoomed(content);
    const x = make_scale(x_spec, [area.left, area.right]).invert;
    const y = make_scale(y_spec, [area.bottom, area.top]).invert;
    return (pixels) => ({
      x: [x(pixels.x[0]), x(pixels.x[1])],
      y: [y(pixels.y[1]), y(pixels.y[0])],
    });
  }
}

function area_rect(area: Area, margin: number): SVGRectElement {
  return s('rect', {
    x: area.left - margin,
    y: area.top - margin,
    width: Math.max(0, area.right - area.left + 2 * margin),
    height: Math.max(0, area.bottom - area.top + margin),
  });
}

function empty_text(area: Area, reason: string): SVGTextElement {
  return s(
    'text',
    {
      x: (area.left + area.right) / 2,
      y: (area.top + area.bottom) / 2,
      'text-anchor': 'middle',
      class: 'empty',
      style: 'fill:var(--ink-soft);font-size:14px',
    },
    reason,
  );
}
