// ListOps (arXiv 1804.06028, with the generator of Long Range Arena, arXiv 2011.04006): nested
// lists such as [MAX 2 9 [MIN 4 7 ] 0 ], to be evaluated to a digit.
//
// Below the depth cap a node is an operator with probability 1/4, with 2 to `arguments` children;
// else a digit. MED is the truncated median, SM the sum modulo 10. Trees are drawn until the length
// (digits, and two tokens for each operator) lies in `lengths`, both ends included: Long Range
// Arena is depth 10, arguments 10, lengths [501, 1999]. The target is at the last token. Group:
// depth of the tree.
//
// Tokens: 0-9 digits, 10 MIN, 11 MAX, 12 MED, 13 SM, 14 the closing bracket, 15 padding.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/counts.h"
#include "data/tasks/generators.h"

namespace fathom::data {
namespace {

constexpr TokenId kFirstOperator = 10;
constexpr TokenId kClose = 14;
constexpr TokenId kEmpty = 15;
constexpr std::int64_t kOperators = 4;

std::int64_t apply(TokenId which, std::vector<std::int64_t>& values) {
  switch (which - kFirstOperator) {
    case 0:
      return *std::min_element(values.begin(), values.end());
    case 1:
      return *std::max_element(values.begin(), values.end());
    case 2: {
      std::sort(values.begin(), values.end());
      const std::size_t half = values.size() / 2;
      return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
    }
    default:
      return std::accumulate(values.begin(), values.end(), std::int64_t{0}) % 10;
  }
}

/// Draws one tree as tokens; gives up as soon as it is too long.
class Tree {
 public:
  Tree(const TaskSpec& spec, Draws& draws) : spec_(spec), draws_(draws) { value_ = node(1); }

  bool fits() const { return !too_long() && std::ssize(tokens_) >= spec_.lengths[0]; }
  const std::vector<TokenId>& tokens() const { return tokens_; }
  std::int64_t value() const { return value_; }
  std::int64_t depth() const { return depth_; }

 private:
  bool too_long() const { return std::ssize(tokens_) > spec_.lengths[1]; }

  std::int64_t node(std::int64_t level) {  // NOLINT(misc-no-recursion): bounded by the depth cap
    depth_ = std::max(depth_, level);
    if (level >= spec_.depth || draws_.below(4) != 0) {
      tokens_.push_back(static_cast<TokenId>(draws_.below(10)));
      return tokens_.back();
    }
    const auto which = static_cast<TokenId>(kFirstOperator + draws_.below(kOperators));
    tokens_.push_back(which);
    std::vector<std::int64_t> values;
    const std::int64_t count = draws_.between(2, spec_.arguments);
    for (std::int64_t i = 0; i < count && !too_long(); ++i) values.push_back(node(level + 1));
    tokens_.push_back(kClose);
    return values.empty() ? 0 : apply(which, values);  // empty: too long, and thrown away
  }

  const TaskSpec& spec_;
  Draws& draws_;
  std::vector<TokenId> tokens_;
  std::int64_t value_ = 0;
  std::int64_t depth_ = 0;
};

class ListOps : public Task {
 public:
  ListOps(TaskSpec spec, std::int64_t context) : Task(std::move(spec), context) {}
  std::int64_t vocabulary() const override { return kEmpty + 1; }
  std::string group_name() const override { return "tree depth"; }

 private:
  TokenId padding() const override { return kEmpty; }

  std::int64_t make(Draws& draws, ExampleUse /*use*/, std::span<TokenId> inputs,
                    std::span<TokenId> targets) const override {
    constexpr int kAttempts = 1'000'000;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const Tree tree(spec(), draws);
      if (!tree.fits()) continue;
      std::copy(tree.tokens().begin(), tree.tokens().end(), inputs.begin());
      targets[tree.tokens().size() - 1] = static_cast<TokenId>(tree.value());
      return tree.depth();
    }
    require_task(false,
                 fmt::format("lists of {} to {} tokens are too rare at depth {} with {} "
                             "arguments; widen lengths",
                             spec().lengths[0], spec().lengths[1], spec().depth, spec().arguments));
    return 0;
  }
};

/// Tokens of the largest tree, or a number above `enough`.
std::int64_t most_tokens(const TaskSpec& spec, std::int64_t enough) {
  std::int64_t size = 1;
  for (std::int64_t level = 1; level < spec.depth && size <= enough; ++level) {
    size = spec.arguments * size + 2;
  }
  return size;
}

}  // namespace

std::unique_ptr<const Task> make_listops(TaskSpec spec, std::int64_t context) {
  resolve_number("depth", spec.depth, 5, 2, 100);
  resolve_number("arguments", spec.arguments, 5, 2, 100);
  resolve_range("lengths", spec.lengths, {16, 128}, 4);
  require_context(spec, context, spec.lengths[1]);
  require_task(most_tokens(spec, spec.lengths[0]) >= spec.lengths[0],
               fmt::format("no list of depth {} with {} arguments has {} tokens", spec.depth,
                           spec.arguments, spec.lengths[0]));
  return std::make_unique<ListOps>(std::move(spec), context);
}

}  // namespace fathom::data
