// Line charts of a probe, in the lab's form.
import type { Chart, Series } from '../generated/lab_schema';
import type { CurvePoint, ProbeDocument } from '../generated/probe_schema';
import type { Plot } from '../charts/plot';
import { line_chart } from '../lab/exhibits';

const series = (name: string, values: (number | null)[], first = 0): Series => ({
  name,
  points: values.map((y, i) => ({ x: i + first, y, low: null, high: null })),
});

function chart(title: string, x: string, y: string, list: Series[], log_y = false): Chart {
  return { title, x, y, log_x: false, log_y, series: list };
}

const curve = (name: string, points: CurvePoint[]): Series => ({
  name,
  points: points.map((point) => ({ x: point.kept, y: point.loss, low: null, high: null })),
});

/// The median of the random orders, with their range as interval.
function random_curve(probe: ProbeDocument): Series[] {
  if (probe.random.length === 0) return [];
  const points = probe.random[0]!.map((first, n) => {
    const losses = probe.random.map((order) => order[n]!.loss ?? NaN).sort((a, b) => a - b);
    return {
      x: first.kept,
      y: losses[Math.floor(losses.length / 2)]!,
      low: losses[0]!,
      high: losses[losses.length - 1]!,
    };
  });
  return [{ name: 'random orders', points }];
}

export const curve_chart = (probe: ProbeDocument): Plot =>
  line_chart(
    chart('Loss against layers kept', 'layers kept', 'nats per token', [
      curve('greedy', probe.greedy),
      curve('lowest influence first', probe.by_influence),
      curve('from the back, last layer kept', probe.last),
      ...random_curve(probe),
    ]),
    'cut-curves',
  );

export const lens_charts = (probe: ProbeDocument): Plot[] => [
  line_chart(
    chart('Loss of stopping here, and distance to the final prediction', 'layers done', 'nats', [
      series('loss', probe.lens.map((entry) => entry.loss)),
      series('KL to the final prediction', probe.lens.map((entry) => entry.divergence)),
    ]),
    'lens-loss',
  ),
  line_chart(
    chart('Same most likely token as at the end', 'layers done', 'share of places', [
      series('agreement', probe.lens.map((entry) => entry.agreement)),
    ]),
    'lens-agreement',
  ),
];

export const stream_charts = (probe: ProbeDocument): Plot[] => [
  line_chart(
    chart(
      'Norms',
      'layer',
      'mean norm',
      [
        series('stream before the layer', probe.layers.map((layer) => layer.stream_norm)),
        series('attention adds', probe.layers.map((layer) => layer.attention_norm)),
        series('feed-forward adds', probe.layers.map((layer) => layer.ffn_norm)),
      ],
      true,
    ),
    'norms',
  ),
  line_chart(
    chart('Cosine of what is added with the stream: below 0 erases', 'layer', 'cosine', [
      series('attention', probe.layers.map((layer) => layer.attention_cosine)),
      series('feed-forward', probe.layers.map((layer) => layer.ffn_cosine)),
      series('both', probe.layers.map((layer) => layer.cosine)),
    ]),
    'cosines',
  ),
  line_chart(
    chart(
      'Largest and median magnitude of the stream',
      'layers done',
      'magnitude',
      [
        series('largest', probe.streams.map((entry) => entry.largest)),
        series('median', probe.streams.map((entry) => entry.median)),
      ],
      true,
    ),
    'magnitudes',
  ),
  line_chart(
    chart(
      `Directions the stream uses, of ${probe.model.width} (${probe.rank_tokens} tokens)`,
      'layers done',
      'effective rank',
      [
        series('entropy of σ', probe.streams.map((entry) => entry.effective_rank)),
        series('entropy of σ²', probe.streams.map((entry) => entry.effective_rank_squares)),
        series('participation ratio', probe.streams.map((entry) => entry.participation)),
      ],
    ),
    'ranks',
  ),
];
