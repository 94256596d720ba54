// The map itself: depth against width, both on logarithms.
//
// From back to front: modelled times as tiles, lines of equal size, the band of depths that are as
// good, the laws, published models, the budget's line and the pick on it.
import type { Model, StopPlan } from '../generated/map_schema';
import { s } from '../dom';
import { fixed, percent, si, whole } from '../format';
import { label, LabelRoom, polyline } from '../charts/marks';
import { Plot, type Content, type View } from '../charts/plot';
import type { Target } from '../charts/tooltip';
import { gpu_time, latency } from './answer';
import { kDash, law_colours, law_mark } from './laws';
import { colour_controls } from './controls';
import { draw_field } from './field';
import { width_at, type MapState } from './state';

const kDepths: [number, number] = [1.8, 272];
const kWidths: [number, number] = [106, 37_000];
const kIsoSizes = [1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13];
type Pair = [number, number];

export function shape_map(state: MapState): Plot {
  const plot: Plot = new Plot({
    id: 'map',
    title: 'Depth against width',
    describe:
      'Published models as dots, laws as curves, the budget as a line with the pick on it. ' +
      'The tables below hold the same numbers.',
    height: 620,
    label_room: 24,
    content: () => make_content(state),
    controls: colour_controls(state),
    note:
      'Curves are solid where their law has data in size, tokens and depth, dashed outside, dotted ' +
      'where they describe habits. Shaded: depths that the laws together put within ' +
      `${Number((100 * state.map.tolerance).toPrecision(2))} % of the best loss. Large dots are ` +
      'released models, small ones members of a published sweep.',
  });
  state.listen(() => plot.update());
  return plot;
}

function make_content(state: MapState): Content {
  const plan = state.plan;
  return {
    x: { label: 'width d', scale: 'log', domain: kWidths, format: si },
    y: { label: 'depth, layers', scale: 'log', domain: kDepths, format: String },
    targets: [
      ...(plan ? [pick_target(state, plan)] : []),
      ...state.map.overlays.flatMap(({ name, points }) =>
        points.map((point) => ({
          x: point.width,
          y: point.layers,
          colour: 'var(--overlay)',
          title: `${point.name || name}: ${point.layers} × ${whole(point.width)}`,
          lines: point.facts as [string, string][],
        })),
      ),
      ...state.map.models.map((model) => model_target(state, model)),
    ],
    table: {
      header: ['model', 'year', 'layers', 'width', 'total', 'non_embedding', 'laws_layers', 'loss_penalty'],
      rows: state.map.models.map((m) => [
        m.name,
        m.year,
        m.layers,
        m.width,
        m.total,
        m.non_embedding,
        m.laws_layers,
        m.penalty,
      ]),
    },
    draw: (view) => draw(view, state),
  };
}

function pick_target(state: MapState, plan: StopPlan): Target {
  const [layers, width] = plan.pick as Pair;
  return {
    x: width,
    y: layers,
    colour: 'var(--accent)',
    title: `The pick: ${layers} × ${whole(width)}`,
    lines: [
      ['parameters', whole(plan.counted)],
      ['as good', `${plan.equals[0]} to ${plan.equals[1]} layers`],
      ['training', gpu_time(plan.train_seconds[state.device]!)],
      ['one token', latency(plan.decode_seconds[state.device]!)],
    ],
  };
}

function model_target(state: MapState, model: Model): Target {
  const lines: [string, string][] = [
    ['shape', `${model.layers} × ${whole(model.width)}, ${model.heads} heads`],
    ['parameters', whole(model.total)],
    ['without embeddings', whole(model.non_embedding)],
    ['tokens', model.tokens === null ? 'not known' : si(model.tokens)],
    [
      'the laws',
      `${fixed(model.laws_layers, 0)} layers (${fixed(model.band[0]!, 0)}–${fixed(model.band[1]!, 0)})`,
    ],
    ['loss over best', `${percent(model.penalty)}, ${model.evidence}`],
    ['one token', latency(model.decode_seconds[state.device]!)],
  ];
  if (model.tokens !== null)
    lines.push([
      'training',
      gpu_time(model.tokens * model.train_seconds_per_token[state.device]!),
    ]);
  return {
    x: model.width,
    y: model.layers,
    colour: 'var(--ink)',
    title: `${model.name} · ${model.organisation}${model.year ? `, ${model.year}` : ''}`,
    lines,
  };
}

function draw(view: View, state: MapState): void {
  const room = new LabelRoom();
  draw_field(view, state);
  draw_iso_lines(view, state, room);
  draw_band(view, state);
  draw_laws(view, state);
  draw_models(view, state);
  draw_budget(view, state, room);
  draw_law_names(view, state, room);
  draw_names(view, state, room);
}

/// Points of c L d^2 + e d = N from the shallowest to the deepest depth of the chart.
function budget_points(view: View, state: MapState, plan: StopPlan, from = 1, to = 400): Pair[] {
  return Array.from({ length: 49 }, (_, i): Pair => {
    const layers = from * (to / from) ** (i / 48);
    return [view.x(width_at(state.map, plan, layers)), view.y(layers)];
  });
}

function draw_iso_lines(view: View, state: MapState, room: LabelRoom): void {
  const any = state.plan ?? state.sizes[0];
  if (!any) return;
  for (const parameters of kIsoSizes) {
    const points = budget_points(view, state, { ...any, parameters });
    view.inside.append(polyline(points, 'var(--axis)', 1, 'stroke-opacity:.55'));
    // Where the line leaves the chart: at the bottom, or at the right edge.
    const { area } = view;
    const at = points.find(([x, y]) => y <= area.bottom - 14 && x <= area.right - 34);
    if (!at || at[0] < area.left + 4 || at[1] < area.top + 12) continue;
    const text = si(parameters);
    if (!room.take(at[0] + 4, at[1] - 2, text)) continue;
    view.over.append(label(at[0] + 4, at[1] - 2, text, 'var(--ink-soft)'));
  }
}

function draw_band(view: View, state: MapState): void {
  const edge = (side: 0 | 1) =>
    state.sizes.map((plan): string => {
      const layers = plan.band[side]!;
      return `${view.x(width_at(state.map, plan, layers)).toFixed(1)},${view.y(layers).toFixed(1)}`;
    });
  view.inside.append(
    s('polygon', {
      class: 'band',
      points: [...edge(0), ...edge(1).reverse()].join(' '),
      style: 'fill:var(--accent);fill-opacity:.11;stroke:none',
    }),
  );
}

/// One curve over all sizes, cut where its mark changes.
function draw_curve(
  view: View,
  state: MapState,
  depth: (plan: StopPlan) => number,
  mark: (plan: StopPlan) => keyof typeof kDash,
  colour: string,
  width: number,
): void {
  const { map, sizes } = state;
  let piece: Pair[] = [];
  let last: keyof typeof kDash | null = null;
  const flush = () => {
    if (last === null || piece.length < 2) return;
    const dash = kDash[last] ? `stroke-dasharray:${kDash[last]};` : '';
    view.inside.append(polyline(piece, colour, width, `${dash}stroke-linecap:round`));
  };
  for (const plan of sizes) {
    const layers = depth(plan);
    const point: Pair = [view.x(width_at(map, plan, layers)), view.y(layers)];
    piece.push(point);
    if (mark(plan) === last) continue;
    flush();
    piece = [point];
    last = mark(plan);
  }
  flush();
}

function draw_laws(view: View, state: MapState): void {
  const colours = law_colours(state.map);
  state.map.laws.forEach((law, i) => {
    if (!state.law_shown(i)) return;
    draw_curve(
      view,
      state,
      (plan) => plan.laws[i]!,
      (plan) => law_mark(plan, i),
      colours[i]!,
      law.fitted ? 2.2 : 1.8,
    );
  });
  const mark = (plan: StopPlan) => (plan.evidence === 'fitted' ? 'fitted' : 'extrapolated');
  draw_curve(view, state, (plan) => plan.optimum, mark, 'var(--accent)', 1.6);
}

const circle = (view: View, x: number, y: number, r: number, style: string, name = '', kind = '') =>
  s('circle', {
    class: kind || null,
    cx: view.x(x).toFixed(1),
    cy: view.y(y).toFixed(1),
    r,
    style,
    'data-name': name || null,
  });

const kOverlayStyle = 'fill:var(--overlay);stroke:var(--paper)';

function draw_models(view: View, state: MapState): void {
  const near = new Set(state.neighbours(12));
  const g = s('g', { class: 'models' });
  for (const model of state.map.models) {
    const colour = near.has(model) ? 'var(--ink)' : 'var(--dot)';
    g.append(
      circle(
        view,
        model.width,
        model.layers,
        model.sweep ? 1.7 : near.has(model) ? 5 : 3.6,
        `fill:${colour};stroke:var(--paper);stroke-width:${model.sweep ? 0.5 : 1}`,
        model.name,
      ),
    );
  }
  for (const { points } of state.map.overlays) {
    for (const point of points)
      g.append(
        circle(view, point.width, point.layers, 3.5, kOverlayStyle, point.name, 'overlay'),
      );
  }
  view.inside.append(g);
}

function draw_budget(view: View, state: MapState, room: LabelRoom): void {
  const plan = state.plan;
  if (!plan) return;
  const [low, high] = plan.equals as Pair;
  view.inside.append(
    polyline(budget_points(view, state, plan), 'var(--accent)', 2, 'stroke-opacity:.8'),
    polyline(
      budget_points(view, state, plan, low, Math.max(high, low + 0.01)),
      'var(--accent)',
      6,
      'stroke-opacity:.45;stroke-linecap:round',
    ),
    circle(
      view,
      plan.pick[1]!,
      plan.pick[0]!,
      8,
      'fill:var(--accent);stroke:var(--paper);stroke-width:2.5',
    ),
  );
  const text = `${plan.pick[0]} × ${whole(plan.pick[1]!)}`;
  const x = view.x(plan.pick[1]!) + 13;
  const y = view.y(plan.pick[0]!) - 9;
  room.take(x, y, text);
  const pick = label(x, y, text, 'var(--accent)');
  pick.style.fontSize = '15px';
  view.over.append(pick);
}

/// Names of the models nearest in size, as many as have room; one name for models of one shape.
function draw_names(view: View, state: MapState, room: LabelRoom): void {
  const spots = new Map<string, Model[]>();
  for (const model of state.neighbours(12)) {
    const spot = `${model.layers}x${model.width}`;
    spots.set(spot, [...(spots.get(spot) ?? []), model]);
  }
  for (const models of [...spots.values()].slice(0, view.narrow ? 3 : 8)) {
    const [first] = models as [Model];
    const more = models.length > 1 ? ` and ${models.length - 1} more` : '';
    const year = first.year ? ` ’${String(first.year).slice(2)}` : '';
    const text = view.narrow ? first.name : `${first.name}${year}${more}`;
    const x = view.x(first.width) + 9;
    const y = view.y(first.layers) + 4;
    if (x + text.length * 7 > view.area.right + 20 || !room.take(x, y, text)) continue;
    view.over.append(label(x, y, text, 'var(--ink)'));
  }
}

/// Each measured law's name next to the last size of its curve that is on the chart.
function draw_law_names(view: View, state: MapState, room: LabelRoom): void {
  if (view.narrow) return;
  const colours = law_colours(state.map);
  const { area } = view;
  state.map.laws.forEach((law, i) => {
    if (!state.law_shown(i)) return;
    for (const plan of [...state.sizes].reverse()) {
      const x = view.x(width_at(state.map, plan, plan.laws[i]!));
      const y = view.y(plan.laws[i]!) - 8;
      const left = x - law.title.length * 7;
      if (x > area.right - 6 || y < area.top + 8 || left < area.left) continue;
      if (!room.take(left, y, law.title)) continue;
      view.over.append(label(x, y, law.title, colours[i]!, 'end'));
      return;
    }
  });
}
