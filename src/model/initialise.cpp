// Initial values of parameters: normal random numbers from a counter-based stream whose number is a
// hash of the parameter's name. A value depends on its index alone, so any thread, or the GPU, may
// draw it.
#include <algorithm>
#include <thread>

#include "core/counts.h"
#include "model/transformer.h"

namespace fathom::model {
namespace {

constexpr std::size_t kWorthAThread = 1 << 18;

/// FNV-1a.
std::uint64_t hash_of(const std::string& name) {
  std::uint64_t hash = 14695981039346656037ull;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

engine::NormalDraw draw_of(const Transformer& model, const Parameter& parameter,
                           std::uint64_t seed) {
  engine::NormalDraw draw{.random = RandomStream(seed, hash_of(parameter.name)),
                          .deviation = parameter.scaling.init_std};
  if (parameter.value_row >= 0) {
    draw.later_begin = parameter.value_row * model.plan.tensor(parameter.id).cols;
    draw.later_deviation = parameter.value_init_std;
  }
  return draw;
}

}  // namespace

std::vector<float> initial_values(const Transformer& model, const Parameter& parameter,
                                  std::uint64_t seed, unsigned threads) {
  const engine::Tensor& tensor = model.plan.tensor(parameter.id);
  std::vector<float> values(as_size(tensor.size()), static_cast<float>(parameter.initial));
  if (parameter.scaling.init_std == 0) return values;
  const engine::NormalDraw normal = draw_of(model, parameter, seed);
  const auto draw = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      values[i] = normal.value(static_cast<std::int64_t>(i));
    }
  };
  if (threads == 0) {
    threads = values.size() < kWorthAThread ? 1 : std::max(1u, std::thread::hardware_concurrency());
  }
  std::vector<std::jthread> others;
  for (std::size_t k = 1; k < threads; ++k) {
    others.emplace_back(draw, values.size() * k / threads, values.size() * (k + 1) / threads);
  }
  draw(0, values.size() / threads);
  others.clear();
  return values;
}

void initialise(const Transformer& model, engine::Executor& executor, std::uint64_t seed) {
  for (const Parameter& parameter : model.parameters) {
    const bool drawn = parameter.scaling.init_std != 0 &&
                       executor.draw(parameter.id, draw_of(model, parameter, seed));
    if (!drawn) executor.write(parameter.id, initial_values(model, parameter, seed));
  }
  executor.run(engine::Program::refresh, {});
}

}  // namespace fathom::model
