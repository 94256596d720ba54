// k-hop sequences: a token that says k, drawn from `hops`, then context - 1 characters. The target
// of a character is the one k hops away, or "nowhere", which counts for the loss and not for the
// accuracy, as in the paper's table. Group: k.
//
// Tokens: 0 nowhere, 1 .. symbols the characters, then one for each entry of `hops`.
#include <fmt/format.h>

#include <algorithm>

#include "core/counts.h"
#include "data/tasks/generators.h"

namespace fathom::data {
namespace {

constexpr TokenId kNowhere = 0;
constexpr std::int32_t kNoPlace = -1;

class Hops : public Task {
 public:
  Hops(TaskSpec spec, std::int64_t context) : Task(std::move(spec), context) {}

  std::int64_t vocabulary() const override { return 1 + spec().symbols + std::ssize(spec().hops); }
  std::string group_name() const override { return "hops"; }
  bool is_scored(TokenId target) const override { return target > kNowhere; }

 private:
  std::int64_t make(Draws& draws, ExampleUse /*use*/, std::span<TokenId> inputs,
                    std::span<TokenId> targets) const override {
    const std::int64_t choice = draws.below(std::ssize(spec().hops));
    inputs[0] = static_cast<TokenId>(1 + spec().symbols + choice);
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      inputs[i] = static_cast<TokenId>(i == 1 ? 1 + draws.below(spec().symbols)
                                              : other_than(inputs[i - 1], draws));
    }
    const std::uint64_t k = spec().hops[as_size(choice)];
    std::vector<std::int32_t> last(as_size(1 + spec().symbols), kNoPlace),
        after(inputs.size(), kNoPlace);
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      std::int32_t& earlier = last[as_size(inputs[i])];
      if (earlier != kNoPlace) after[i] = earlier + 1;
      earlier = static_cast<std::int32_t>(i);
    }
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      auto place = static_cast<std::int32_t>(i);
      for (std::uint64_t hop = 0; hop < k && place != kNoPlace; ++hop)
        place = after[as_size(place)];
      targets[i] = place == kNoPlace ? kNowhere : inputs[as_size(place)];
    }
    return as_signed(k);
  }

  std::int64_t other_than(TokenId character, Draws& draws) const {
    const std::int64_t drawn = 1 + draws.below(spec().symbols - 1);
    return drawn < character ? drawn : drawn + 1;
  }
};

}  // namespace

std::unique_ptr<const Task> make_hops(TaskSpec spec, std::int64_t context) {
  resolve_number("symbols", spec.symbols, 4, 2, 250);
  if (spec.hops.empty()) {
    for (std::uint64_t k = 0; k <= 16; ++k) spec.hops.push_back(k);
  }
  const std::int64_t most = as_signed(*std::max_element(spec.hops.begin(), spec.hops.end()));
  require_task(most + 2 <= context - 1,
               fmt::format("{} hops need {} characters or more; model.context = {} holds {}", most,
                           most + 2, context, context - 1));
  return std::make_unique<Hops>(std::move(spec), context);
}

}  // namespace fathom::data
