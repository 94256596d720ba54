#include "lab/collapse/stack_spec.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"
#include "core/random.h"

namespace fathom::lab {
namespace {

/// Draws matrices in a fixed order from one stream.
class Drawer {
 public:
  explicit Drawer(std::uint64_t seed) : random_(seed, kStream) {}

  Matrix<double> normal(std::size_t rows, std::size_t columns, double deviation) {
    Matrix<double> matrix(rows, columns);
    for (double& value : matrix.values) value = deviation * random_.normal(index_++);
    return matrix;
  }

 private:
  static constexpr std::uint64_t kStream = 0x636f6c6c61707365;  // "collapse"
  RandomStream random_;
  std::uint64_t index_ = 0;
};

}  // namespace

std::string StackSpec::key() const {
  std::string key = fmt::format("tokens={} width={} heads={} layers={} scale={}", tokens, width,
                                heads, layers, scale);
  if (causal) key += " causal";
  if (window != 0) key += fmt::format(" window={}", window);
  if (skip) key += " skip";
  if (norm) key += " norm";
  if (mlp) key += " mlp";
  return key;
}

void validate(const StackSpec& spec) {
  if (spec.width % spec.heads != 0) {
    throw ConfigError(
        fmt::format("--heads must divide --width: {} does not divide {}", spec.heads, spec.width));
  }
  if (spec.norm && spec.width < 2) {
    throw ConfigError("--norm layer needs --width 2 or more: one number has no variance");
  }
  if (spec.tokens < 2) throw ConfigError("--tokens must be at least 2: one token is always rank 1");
}

StackDraw draw_stack(const StackSpec& spec, std::uint64_t seed) {
  Drawer drawer(seed);
  const std::size_t d = spec.width;
  const double unit = 1 / std::sqrt(static_cast<double>(d));
  StackDraw draw;
  draw.x = drawer.normal(spec.tokens, d, 1);
  for (std::size_t l = 0; l < spec.layers; ++l) {
    LayerWeights layer;
    for (std::size_t h = 0; h < spec.heads; ++h) {
      HeadWeights head;
      head.query = drawer.normal(d, spec.head_size(), spec.scale * unit);
      head.key = drawer.normal(d, spec.head_size(), spec.scale * unit);
      head.value = drawer.normal(d, spec.head_size(), unit);
      head.output = drawer.normal(spec.head_size(), d, unit);
      layer.heads.push_back(std::move(head));
    }
    if (spec.mlp) {
      layer.up = drawer.normal(d, 4 * d, unit);
      layer.down = drawer.normal(4 * d, d, unit / 2);
    }
    draw.layers.push_back(std::move(layer));
  }
  return draw;
}

double stack_operations(const StackSpec& spec) {
  const auto n = static_cast<double>(spec.tokens);
  const auto d = static_cast<double>(spec.width);
  return static_cast<double>(spec.layers) *
         (4 * n * d * d + 2 * n * n * d + (spec.mlp ? 8 * n * d * d : 0));
}

}  // namespace fathom::lab
