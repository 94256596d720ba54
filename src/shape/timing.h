// Modelled times: a roofline per matrix product, memory passes for the rest, and a fixed cost per
// layer for the dependent kernels that take their time at any width. Modelled, not measured.
//
// A product of M x K by K x N takes max(2 M N K / (rate e), bytes / bandwidth), e the share of a
// full machine that its tiles use. Decoding one token reads every weight and the cache once:
//   L (t_fixed + bytes_layer / bandwidth) + (V D bytes + cache) / bandwidth.
#pragma once

#include <cstdint>
#include <string>

#include "shape/hardware.h"
#include "shape/shape.h"

namespace fathom {

/// How well a matrix product fills the machine: the best of the usual tile sizes.
struct TileEfficiency {
  double tile = 1;  // useful part of the padded tiles
  double wave = 1;  // tiles over the tiles that the same number of full waves would hold
  std::string tile_shape;
  double product() const { return tile * wave; }
};
TileEfficiency tile_efficiency(std::int64_t m, std::int64_t n, int multiprocessors);

/// Tokens per step and device that times are modelled for by default.
inline constexpr std::int64_t kDefaultStepTokens = 65536;

struct StepTime {
  double matmul = 0;
  double attention = 0;
  double memory_passes = 0;  // norms, residuals, activations, loss
  double optimizer = 0;
  double fixed = 0;
  double matmul_efficiency = 1;  // tile and wave efficiency over all products, weighted by work
  double total() const { return matmul + attention + memory_passes + optimizer + fixed; }
};

/// One optimiser step on `tokens` tokens on one device.
StepTime model_step_time(const Shape& shape, const Hardware& hardware, std::int64_t tokens);

struct DecodeTime {
  double fixed = 0;
  double weights = 0;
  double cache = 0;
  double total() const { return fixed + weights + cache; }
};

/// One token of one sequence, bf16 weights, with `cached` tokens of context.
DecodeTime model_decode_time(const Shape& shape, const Hardware& hardware, double cached);

/// The width at which reading a layer's 12 D^2 weights takes as long as its fixed cost: below it
/// depth sets the latency of a single sequence, above it parameters do.
double latency_crossover_width(const Hardware& hardware);

}  // namespace fathom
