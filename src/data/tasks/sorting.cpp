// Sorting: n = context / 2 random letters, a separator, the letters in order. The targets are the
// sorted letters, each at the position before it. Tokens: the letters, then the separator.
//
// With `in_place` n = context random letters, and the target of position i is the i-th of them in
// order. No input gives an answer away, so a model may attend to both sides.
#include <fmt/format.h>

#include <algorithm>

#include "core/counts.h"
#include "data/tasks/generators.h"

namespace fathom::data {
namespace {

class Sorting : public Task {
 public:
  Sorting(TaskSpec spec, std::int64_t context) : Task(std::move(spec), context) {}
  std::int64_t vocabulary() const override { return spec().symbols + (spec().in_place ? 0 : 1); }

 private:
  std::int64_t make(Draws& draws, ExampleUse /*use*/, std::span<TokenId> inputs,
                    std::span<TokenId> targets) const override {
    const std::size_t n = spec().in_place ? inputs.size() : inputs.size() / 2;
    std::vector<TokenId> letters(n);
    for (TokenId& letter : letters) letter = static_cast<TokenId>(draws.below(spec().symbols));
    std::copy(letters.begin(), letters.end(), inputs.begin());
    std::sort(letters.begin(), letters.end());
    if (spec().in_place) {
      std::copy(letters.begin(), letters.end(), targets.begin());
      return 0;
    }
    inputs[n] = static_cast<TokenId>(spec().symbols);
    std::copy(letters.begin(), letters.end() - 1, inputs.begin() + std::ssize(letters) + 1);
    std::copy(letters.begin(), letters.end(), targets.begin() + std::ssize(letters));
    return 0;
  }
};

}  // namespace

std::unique_ptr<const Task> make_sort(TaskSpec spec, std::int64_t context) {
  resolve_number("symbols", spec.symbols, 10, 2, 1 << 20);
  require_task(
      spec.in_place || (context >= 4 && context % 2 == 0),
      fmt::format("task sort needs an even model.context of 4 or more, not {}: the letters "
                  "and their order are of equal length",
                  context));
  return std::make_unique<Sorting>(std::move(spec), context);
}

}  // namespace fathom::data
