// One cycle or two: the n edges of one directed cycle of n vertices, or of two of n / 2, in random
// order and with random names. Edge u -> v is the token u n + v; every position's target is 0 for
// one cycle and 1 for two. All counts and degrees are the same in both cases: only following the
// edges distinguishes them. Group: cycles.
#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "core/counts.h"
#include "data/tasks/generators.h"

namespace fathom::data {
namespace {

template <class T>
void shuffle(std::span<T> values, Draws& draws) {
  for (std::int64_t i = std::ssize(values) - 1; i > 0; --i) {
    std::swap(values[as_size(i)], values[as_size(draws.below(i + 1))]);
  }
}

class Cycles : public Task {
 public:
  Cycles(TaskSpec spec, std::int64_t context) : Task(std::move(spec), context) {}

  std::int64_t vocabulary() const override { return spec().vertices * spec().vertices; }
  std::string group_name() const override { return "cycles"; }

 private:
  std::int64_t make(Draws& draws, ExampleUse /*use*/, std::span<TokenId> inputs,
                    std::span<TokenId> targets) const override {
    const std::int64_t n = spec().vertices;
    const std::int64_t cycles = 1 + draws.below(2);
    const std::int64_t size = n / cycles;
    std::vector<std::int64_t> names(as_size(n));
    std::iota(names.begin(), names.end(), 0);
    shuffle(std::span(names), draws);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t next = i / size * size + (i + 1) % size;
      inputs[as_size(i)] = static_cast<TokenId>(names[as_size(i)] * n + names[as_size(next)]);
      targets[as_size(i)] = static_cast<TokenId>(cycles - 1);
    }
    shuffle(inputs, draws);
    return cycles;
  }
};

}  // namespace

std::unique_ptr<const Task> make_cycles(TaskSpec spec, std::int64_t context) {
  resolve_number("vertices", spec.vertices, 8, 6, 4096);
  require_task(
      spec.vertices % 2 == 0,
      fmt::format("vertices = {} must be even: two cycles have half of them each", spec.vertices));
  require_task(context == spec.vertices,
               fmt::format("task cycles has one token per edge: model.context must be {}, not {}",
                           spec.vertices, context));
  return std::make_unique<Cycles>(std::move(spec), context);
}

}  // namespace fathom::data
