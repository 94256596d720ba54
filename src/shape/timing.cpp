#include "shape/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/counts.h"
#include "shape/flops.h"
#include "shape/memory.h"
#include "shape/parameters.h"

namespace fathom {
namespace {

/// Share of the matmul rate that a fused attention kernel reaches at best, and the head size it
/// needs for that: smaller heads leave the matrix units idle.
constexpr double kAttentionShare = 0.6;
constexpr double kFullHeadSize = 128;

struct Tile {
  std::int64_t m, n;
  double quality;  // rate of this tile against the largest, per unit of work
};
constexpr std::array<Tile, 5> kTiles{
    {{128, 256, 1.0}, {256, 128, 1.0}, {128, 128, 0.9}, {128, 64, 0.75}, {64, 64, 0.6}}};

std::int64_t ceil_divide(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

struct Accumulator {
  const Hardware& hardware;
  double seconds = 0;
  double ideal_seconds = 0;

  void add_product(std::int64_t m, std::int64_t n, std::int64_t k) {
    const double work = 2.0 * as_double(m) * as_double(n) * as_double(k);
    const double bytes = 2.0 * (as_double(m) * as_double(k) + as_double(k) * as_double(n) +
                                as_double(m) * as_double(n));
    const double efficiency = tile_efficiency(m, n, hardware.multiprocessors).product();
    const double compute = work / (hardware.matmul_rate() * efficiency);
    seconds += std::max(compute, bytes / hardware.copy_rate());
    ideal_seconds += work / hardware.matmul_rate();
  }

  /// Forward, input gradient and weight gradient of one linear map on M tokens. Weight gradients
  /// are small matrices with a long inner dimension; libraries split it over the machine, so they
  /// are counted as a full one.
  void add_linear(std::int64_t tokens, std::int64_t in, std::int64_t out) {
    add_product(tokens, out, in);
    add_product(tokens, in, out);
    const double work = 2.0 * as_double(tokens) * as_double(in) * as_double(out);
    const double bytes = 2.0 * as_double(tokens) * as_double(in + out);
    seconds += std::max(work / hardware.matmul_rate(), bytes / hardware.copy_rate());
    ideal_seconds += work / hardware.matmul_rate();
  }
};

Accumulator attention_products(const Shape& shape, const Hardware& hardware, std::int64_t tokens) {
  Accumulator products{hardware};
  const LatentAttention& latent = shape.latent;
  const std::int64_t D = shape.width;
  if (!shape.latent_attention()) {
    products.add_linear(tokens, D, shape.attention_width() + 2 * shape.kv_width());
  } else {
    if (latent.q_rank > 0) products.add_linear(tokens, D, latent.q_rank);
    products.add_linear(tokens, latent.q_rank > 0 ? latent.q_rank : D, shape.attention_width());
    products.add_linear(tokens, D, latent.kv_rank + latent.rope_size);
    products.add_linear(tokens, latent.kv_rank,
                        shape.heads * (shape.head_size - latent.rope_size + latent.value_size));
  }
  products.add_linear(tokens, shape.value_width(), D);
  return products;
}

Accumulator feed_forward_products(const Shape& shape, const Hardware& hardware, std::int64_t tokens,
                                  std::int64_t F) {
  Accumulator products{hardware};
  if (F == 0) return products;
  products.add_linear(tokens, shape.width, (shape.ffn_matrices - 1) * F);
  products.add_linear(tokens, F, shape.width);
  return products;
}

/// One layer with experts: a grouped product over all visits, as if the experts were one matrix
/// that tokens * active rows are multiplied by; loads are assumed even.
Accumulator expert_products(const Shape& shape, const Hardware& hardware, std::int64_t tokens) {
  Accumulator products{hardware};
  if (!shape.mixture()) return products;
  const Experts& experts = shape.experts;
  products.add_linear(tokens, shape.width, experts.routed);
  for (const Accumulator& part :
       {feed_forward_products(shape, hardware, tokens * experts.active, experts.ffn),
        feed_forward_products(shape, hardware, tokens, experts.shared_ffn)}) {
    products.seconds += part.seconds;
    products.ideal_seconds += part.ideal_seconds;
  }
  return products;
}

}  // namespace

TileEfficiency tile_efficiency(std::int64_t m, std::int64_t n, int multiprocessors) {
  TileEfficiency best;
  double best_value = -1;
  for (const Tile& tile : kTiles) {
    const std::int64_t blocks = ceil_divide(m, tile.m) * ceil_divide(n, tile.n);
    const std::int64_t waves = ceil_divide(blocks, multiprocessors);
    TileEfficiency candidate;
    candidate.tile = as_double(m) * as_double(n) / (as_double(blocks) * as_double(tile.m * tile.n));
    candidate.wave = as_double(blocks) / as_double(waves * multiprocessors);
    candidate.tile_shape = fmt::format("{}×{}", tile.m, tile.n);
    const double value = candidate.product() * tile.quality;
    if (value > best_value) {
      best_value = value;
      candidate.tile *= tile.quality;
      best = candidate;
    }
  }
  return best;
}

StepTime model_step_time(const Shape& shape, const Hardware& hardware, std::int64_t tokens) {
  const double L = as_double(shape.layers);
  const double D = as_double(shape.width);
  const double M = as_double(tokens);

  const double sparse = as_double(shape.expert_layers());
  const Accumulator attention_layer = attention_products(shape, hardware, tokens);
  const Accumulator dense = feed_forward_products(shape, hardware, tokens, shape.ffn);
  const Accumulator mixture = expert_products(shape, hardware, tokens);
  Accumulator head{hardware};
  head.add_linear(tokens, shape.width, shape.vocab);

  StepTime time;
  time.matmul = L * attention_layer.seconds + (L - sparse) * dense.seconds +
                sparse * mixture.seconds + head.seconds;
  time.matmul_efficiency = (L * attention_layer.ideal_seconds + (L - sparse) * dense.ideal_seconds +
                            sparse * mixture.ideal_seconds + head.ideal_seconds) /
                           time.matmul;

  // Forward 4 H K per position seen, backward 2.5 times that (scores recomputed).
  const double seen = mean_positions_seen(as_double(shape.context));
  const double attention =
      3.5 * 2 * L * as_double(shape.attention_width() + shape.value_width()) * seen * M;
  const double head_share = std::min(1.0, as_double(shape.head_size) / kFullHeadSize);
  time.attention = attention / (hardware.matmul_rate() * kAttentionShare * head_share);

  // bf16 bytes moved by everything that is not a product, fused where engines fuse: two norms with
  // their residual adds (forward 8D, backward 12D each), activation forward and backward (10F
  // plain, 15F gated); logits in fp32 read and written about three times.
  const Experts& experts = shape.experts;
  const double F = ((L - sparse) * as_double(shape.ffn) +
                    sparse * as_double(experts.active * experts.ffn + experts.shared_ffn)) /
                   L;
  const double per_layer = 2 * 20 * D + (shape.gated() ? 15 : 10) * F;
  const double loss = 12 * as_double(shape.vocab);
  time.memory_passes = M * (L * per_layer + loss) / hardware.copy_rate();

  // AdamW reads gradient, master, two moments and writes master, moments, bf16 weights.
  const double parameters = as_double(count_parameters(shape).total());
  time.optimizer = 28 * parameters / hardware.copy_rate();
  time.fixed = L * hardware.train_layer_fixed_seconds;
  return time;
}

DecodeTime model_decode_time(const Shape& shape, const Hardware& hardware, double cached) {
  const ParameterCount parameters = count_parameters(shape);
  const double layer_weights = as_double(parameters.active_non_embedding());
  const double head = as_double(shape.vocab) * as_double(shape.width);
  DecodeTime time;
  time.fixed = as_double(shape.layers) * hardware.decode_layer_fixed_seconds;
  time.weights = 2 * (layer_weights + head) / hardware.copy_rate();
  time.cache = cached * kv_bytes_per_token(shape) / hardware.copy_rate();
  return time;
}

double latency_crossover_width(const Hardware& hardware) {
  const double layer_bytes_over_width_squared = 2 * as_double(kPaperBlockCoefficient);
  return std::sqrt(hardware.decode_layer_fixed_seconds * hardware.copy_rate() /
                   layer_bytes_over_width_squared);
}

}  // namespace fathom
