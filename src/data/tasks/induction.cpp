// Induction: a block of random tokens, then the same block again (arXiv 2209.11895).
//
//   begin, 0 to P random tokens, S random tokens, the same S tokens, padding
//
// with S drawn from `lengths` and P the least of them: with a fixed period or beginning, one layer
// could find its answer by position alone. Only the second copy has targets, from its second token
// on: what comes before cannot be predicted. Group: S.
#include <fmt/format.h>

#include "core/counts.h"
#include "data/tasks/generators.h"

namespace fathom::data {
namespace {

constexpr TokenId kBlockBegin = 1;
constexpr TokenId kFirstLetter = 2;

class Induction : public Task {
 public:
  Induction(TaskSpec spec, std::int64_t context) : Task(std::move(spec), context) {}

  std::int64_t vocabulary() const override { return kFirstLetter + spec().symbols; }
  std::string group_name() const override { return "period"; }

 private:
  std::int64_t make(Draws& draws, ExampleUse /*use*/, std::span<TokenId> inputs,
                    std::span<TokenId> targets) const override {
    const std::int64_t period = draws.between(spec().lengths[0], spec().lengths[1]);
    const std::int64_t before = 1 + draws.between(0, spec().lengths[0]);
    std::vector<TokenId> sequence{kBlockBegin};
    while (std::ssize(sequence) < before + period) {
      sequence.push_back(static_cast<TokenId>(kFirstLetter + draws.below(spec().symbols)));
    }
    for (std::int64_t i = 0; i < period; ++i) sequence.push_back(sequence[as_size(before + i)]);
    for (std::int64_t t = 0; t < std::min(context(), std::ssize(sequence)); ++t) {
      inputs[as_size(t)] = sequence[as_size(t)];
      const bool foretold = t >= before + period && t + 1 < std::ssize(sequence);
      if (foretold) targets[as_size(t)] = sequence[as_size(t + 1)];
    }
    return period;
  }
};

}  // namespace

std::unique_ptr<const Task> make_induction(TaskSpec spec, std::int64_t context) {
  resolve_number("symbols", spec.symbols, 64, 2, 1 << 20);
  resolve_range("lengths", spec.lengths, {16, 32}, 2);
  require_context(spec, context, 1 + spec.lengths[0] + spec.lengths[1] + 1);
  return std::make_unique<Induction>(std::move(spec), context);
}

}  // namespace fathom::data
