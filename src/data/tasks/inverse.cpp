// Inverse permutation: the letters 0 to n-1 in random order, n = context; the target of position i
// is where letter i stands. One head that can distinguish n keys solves it, so it tests how large
// a head must be for a given length (arXiv 2002.07028). It needs bidirectional attention.
#include <utility>

#include "core/counts.h"
#include "data/tasks/generators.h"

namespace fathom::data {
namespace {

class Inverse : public Task {
 public:
  Inverse(TaskSpec spec, std::int64_t context) : Task(std::move(spec), context) {}
  std::int64_t vocabulary() const override { return context(); }

 private:
  std::int64_t make(Draws& draws, ExampleUse /*use*/, std::span<TokenId> inputs,
                    std::span<TokenId> targets) const override {
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = static_cast<TokenId>(i);
    for (std::size_t i = inputs.size() - 1; i > 0; --i) {
      std::swap(inputs[i], inputs[as_size(draws.below(as_signed(i + 1)))]);
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      targets[as_size(inputs[i])] = static_cast<TokenId>(i);
    }
    return 0;
  }
};

}  // namespace

std::unique_ptr<const Task> make_inverse(TaskSpec spec, std::int64_t context) {
  require_context(spec, context, 2);
  return std::make_unique<Inverse>(std::move(spec), context);
}

}  // namespace fathom::data
