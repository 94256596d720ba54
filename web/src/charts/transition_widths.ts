// The width from which a depth pays, against depth, with this study's law and the published one:
//
//   ln d = a + b L,   band: one standard error, sqrt(a_error^2 + (L b_error)^2 + 2 L cov(a, b)),
//                     cov(a, b) = correlation a_error b_error
//
// Transitions are measured as sizes; their interval in width follows from N ~ d^2 at fixed depth.
import type { Law, Transition } from '../document';
import { s } from '../dom';
import { fixed, si, whole } from '../format';
import type { Model } from '../model';
import { padded } from './axes';
import { band, label, LabelRoom, polyline } from './marks';
import { Plot, type Content, type View } from './plot';
import type { Target } from './tooltip';

export interface Mark {
  transition: Transition;
  depth: number;
  width: number;
  low: number | null;
  high: number | null;
}

const kOwn = 'var(--accent)';
const kPublished = 'var(--ink-soft)';

const laws_of = ({ study: { law, published } }: Model): Law[] =>
  [law, published].filter((entry): entry is Law => entry !== null);

export function transition_widths(model: Model): Plot {
  return new Plot({
    id: 'transition-widths',
    title: 'Width from which depth pays',
    describe: 'Transition widths against depth, with the fitted law and the published law.',
    height: 420,
    label_room: 108,
    content: () => make_content(model, model.study.law, model.study.published),
    note: () =>
      'Points: transitions of this study with 95 % intervals; arrows: one-sided bounds where the ' +
      `transition lies outside the grid. Bands: one standard error of each law.${caveat(laws_of(model))}`,
  });
}

/// Errors whose correlation is not given are drawn as independent, which is usually too wide.
function caveat(laws: Law[]): string {
  const names = laws.filter((law) => law.correlation === null).map((law) => law.name);
  if (names.length === 0) return '';
  return ` The correlation of a and b is unknown for ${names.join(' and ')} and taken as zero.`;
}

/// Where a transition is drawn: at the deeper depth, or midway when the law was read that way.
export function marks(transitions: Transition[], law: Law | null): Mark[] {
  const midpoint = law?.reading.toLowerCase().includes('mid') ?? false;
  return transitions.flatMap((transition) => {
    const depth = midpoint ? (transition.shallow + transition.deep) / 2 : transition.deep;
    const size = transition.params ?? bound(transition);
    if (size === null || transition.status === 'unclear') return [];
    const width = transition.width ?? Math.sqrt(size / (12 * depth));
    const at = (params: number | null) =>
      params === null ? null : width * Math.sqrt(params / size);
    return [{ transition, depth, width, low: at(transition.low), high: at(transition.high) }];
  });
}

function bound(transition: Transition): number | null {
  if (transition.status === 'below grid') return transition.high ?? transition.low;
  if (transition.status === 'above grid') return transition.low ?? transition.high;
  return null;
}

export const law_width = (law: Law, depth: number): number => Math.exp(law.a + law.b * depth);

export function law_error(law: Law, depth: number): number {
  const a = law.a_error ?? 0;
  const b = law.b_error ?? 0;
  const covariance = (law.correlation ?? 0) * a * b;
  return Math.sqrt(Math.max(0, a * a + (depth * b) ** 2 + 2 * depth * covariance));
}

function make_content(model: Model, law: Law | null, published: Law | null): Content {
  const points = marks(model.study.transitions, law);
  const deepest = Math.max(...model.depths, ...points.map((mark) => mark.depth), 2);
  const x_domain: [number, number] = [0, deepest * 1.06];
  const laws = laws_of(model);
  const heights = points.flatMap((mark) => [
    mark.width,
    mark.low ?? mark.width,
    mark.high ?? mark.width,
  ]);
  for (const entry of laws) {
    heights.push(law_width(entry, x_domain[0]), law_width(entry, x_domain[1]));
  }
  const content: Content = {
    x: {
      label: 'depth L, layers',
      scale: 'linear',
      domain: x_domain,
      format: (value) => fixed(value, Number.isInteger(value) ? 0 : 1),
    },
    y: {
      label: 'width d',
      scale: 'log',
      domain: padded(
        heights.filter((value) => value > 0 && value < 1e9),
        'log',
        0.06,
      ),
      format: si,
    },
    targets: points.map(target),
    table: csv(points, law, published),
    draw: (view) => {
      if (published) draw_law(view, published, x_domain, kPublished, 'published', '5 4');
      if (law) draw_law(view, law, x_domain, kOwn, 'this study', '');
      const room = new LabelRoom();
      for (const mark of points) draw_mark(view, mark, room);
    },
  };
  if (laws.length === 0 && points.length === 0) {
    content.empty = 'No transition and no law: nothing to compare.';
  }
  return content;
}

function draw_law(
  view: View,
  law: Law,
  domain: [number, number],
  colour: string,
  name: string,
  dash: string,
): void {
  const depths = Array.from(
    { length: 61 },
    (_, i) => domain[0] + (i / 60) * (domain[1] - domain[0]),
  );
  const at = (depth: number, sigma: number) =>
    view.y(Math.max(1e-6, law_width(law, depth) * Math.exp(sigma * law_error(law, depth))));
  const lines = s('g', { class: 'law', 'data-law': name });
  lines.append(
    band(
      depths.map((depth) => [view.x(depth), at(depth, -1), at(depth, 1)]),
      colour,
      0.13,
    ),
    polyline(
      depths.map((depth): [number, number] => [view.x(depth), at(depth, 0)]),
      colour,
      2,
      dash ? `stroke-dasharray:${dash}` : '',
    ),
  );
  view.inside.append(lines);
  const end = Math.min(view.area.bottom - 4, Math.max(view.area.top + 8, at(domain[1], 0) + 4));
  if (view.narrow) {
    const y = at(domain[1] * 0.97, 0) - 8;
    view.over.append(label(view.area.right, Math.max(view.area.top + 10, y), name, colour, 'end'));
  } else {
    view.over.append(label(view.area.right + 8, end, name, colour));
  }
}

function draw_mark(view: View, mark: Mark, room: LabelRoom): void {
  const x = view.x(mark.depth);
  const y = view.y(mark.width);
  const g = s('g', { class: 'transition', 'data-status': mark.transition.status });
  const ink = 'stroke:var(--ink);stroke-width:1.6;fill:none';
  if (mark.transition.status === 'crossing') {
    if (mark.low !== null && mark.high !== null) {
      const [low, high] = [view.y(mark.low), view.y(mark.high)];
      g.append(
        s('path', { d: `M${x} ${low}V${high}M${x - 4} ${low}h8M${x - 4} ${high}h8`, style: ink }),
      );
    }
    g.append(s('circle', { cx: x, cy: y, r: 5, style: 'fill:var(--accent);stroke:var(--paper)' }));
  } else {
    // The bound's tail is at the bound; the arrow points to where the transition must lie.
    const way = mark.transition.status === 'below grid' ? 1 : -1;
    const d = `M${x - 6} ${y}h12M${x} ${y}v${22 * way}m-4 ${-6 * way}l4 ${6 * way}l4 ${-6 * way}`;
    g.append(s('path', { d, style: ink }));
  }
  const { shallow, deep } = mark.transition;
  const name = `${shallow} → ${deep}`;
  view.inside.append(g);
  // On the left where the right edge would cut it.
  const width = name.length * 7.2;
  const right = x + 9 + width <= view.width;
  if (!room.take(right ? x + 9 : x - 9 - width, y + 4, name)) return;
  view.over.append(label(right ? x + 9 : x - 9, y + 4, name, 'var(--ink)', right ? 'start' : 'end'));
}

function target(mark: Mark): Target {
  const { transition } = mark;
  const lines: [string, string][] = [['status', transition.status]];
  if (transition.status === 'crossing') {
    lines.push(['width', whole(mark.width)], ['parameters', si(transition.params)]);
    if (transition.low !== null && transition.high !== null) {
      lines.push(['95 % interval', `${si(transition.low)} to ${si(transition.high)}`]);
    }
  } else {
    lines.push(['width', `${transition.status === 'below grid' ? '<' : '>'} ${whole(mark.width)}`]);
  }
  return {
    x: mark.depth,
    y: mark.width,
    colour: 'var(--accent)',
    title: `${transition.shallow} → ${transition.deep} layers`,
    lines,
  };
}

function csv(points: Mark[], law: Law | null, published: Law | null) {
  return {
    header: [
      'shallow',
      'deep',
      'depth',
      'status',
      'width',
      'width_low',
      'width_high',
      'law',
      'published',
    ],
    rows: points.map((mark) => [
      mark.transition.shallow,
      mark.transition.deep,
      mark.depth,
      mark.transition.status,
      mark.width,
      mark.low,
      mark.high,
      law ? law_width(law, mark.depth) : null,
      published ? law_width(published, mark.depth) : null,
    ]),
  };
}
