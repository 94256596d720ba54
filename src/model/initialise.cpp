// Initial values of parameters: normal numbers by Box and Muller from a counter-based stream whose
// number is a hash of the parameter's name.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <thread>

#include "core/random.h"
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

double normal(const RandomStream& random, std::uint64_t index) {
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform(2 * index)));
  return radius * std::cos(2 * std::numbers::pi * random.uniform(2 * index + 1));
}

}  // namespace

std::vector<float> initial_values(const Transformer& model, const Parameter& parameter,
                                  std::uint64_t seed) {
  const engine::Tensor& tensor = model.plan.tensor(parameter.id);
  std::vector<float> values(static_cast<std::size_t>(tensor.size()),
                            static_cast<float>(parameter.initial));
  if (parameter.scaling.init_std == 0) return values;
  const RandomStream random(seed, hash_of(parameter.name));
  const auto draw = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const bool is_value = parameter.value_row >= 0 &&
                            static_cast<std::int64_t>(i) / tensor.cols >= parameter.value_row;
      const double std_deviation = is_value ? parameter.value_init_std : parameter.scaling.init_std;
      values[i] = static_cast<float>(std_deviation * normal(random, i));
    }
  };
  // A value depends on its index alone, so large tensors are drawn by all cores at once.
  const std::size_t workers =
      values.size() < kWorthAThread ? 1 : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::jthread> threads;
  for (std::size_t k = 1; k < workers; ++k) {
    threads.emplace_back(draw, values.size() * k / workers, values.size() * (k + 1) / workers);
  }
  draw(0, values.size() / workers);
  threads.clear();
  return values;
}

void initialise(const Transformer& model, engine::Executor& executor, std::uint64_t seed) {
  for (const Parameter& parameter : model.parameters) {
    executor.write(parameter.id, initial_values(model, parameter, seed));
  }
  executor.run(engine::Program::refresh, {});
}

}  // namespace fathom::model
