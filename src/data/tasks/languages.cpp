// Languages read letter by letter: the target at a letter says something about the prefix that
// ends with it.
//
//   counting  L_k = a+ b+ a+ ... of k blocks (C-RASP's depth hierarchy): is the prefix in L_k?
//   stair     strings over a, b, c that contain a^k once the c's are deleted: is the prefix one?
//   dyck      brackets of several kinds: which kind is open innermost, 0 for none?
//
// Tokens of the first two: 0 begin, 1 a, 2 b, 3 c or padding, 4 padding. A string has `lengths`
// letters in training, `eval_lengths` when held out; a target is 0 or 1.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/counts.h"
#include "data/tasks/generators.h"

namespace fathom::data {
namespace {

constexpr TokenId kBegin = 0;
constexpr TokenId kA = 1;
constexpr TokenId kB = 2;
constexpr TokenId kC = 3;
constexpr TokenId kPadding = 4;

class Language : public Task {
 public:
  Language(TaskSpec spec, std::int64_t context) : Task(std::move(spec), context) {}
  std::int64_t vocabulary() const override { return kPadding + 1; }

 protected:
  std::int64_t draw_length(Draws& draws, ExampleUse use) const {
    const auto& lengths = use == ExampleUse::training ? spec().lengths : spec().eval_lengths;
    return draws.between(lengths[0], lengths[1]);
  }

 private:
  TokenId padding() const override { return kPadding; }
};

class Counting : public Language {
 public:
  using Language::Language;

 private:
  std::int64_t make(Draws& draws, ExampleUse use, std::span<TokenId> inputs,
                    std::span<TokenId> targets) const override {
    const std::int64_t length = draw_length(draws, use);
    std::set<std::int64_t> switches;  // first letters of the blocks after the first
    while (std::ssize(switches) < spec().blocks - 1) switches.insert(draws.between(1, length - 1));
    inputs[0] = kBegin;
    std::int64_t block = 1;
    for (std::int64_t i = 0; i < length; ++i) {
      block += switches.contains(i) ? 1 : 0;
      inputs[as_size(i + 1)] = block % 2 == 1 ? kA : kB;
      targets[as_size(i + 1)] = block == spec().blocks ? 1 : 0;
    }
    return 0;
  }
};

class Stair : public Language {
 public:
  using Language::Language;

 private:
  std::int64_t make(Draws& draws, ExampleUse use, std::span<TokenId> inputs,
                    std::span<TokenId> targets) const override {
    const std::int64_t length = draw_length(draws, use);
    inputs[0] = kBegin;
    std::int64_t run = 0;
    bool found = false;
    for (std::int64_t i = 1; i <= length; ++i) {
      // Half of the letters are a's, so that both answers are common for k up to 5 or so.
      const std::int64_t drawn = draws.below(4);
      const TokenId letter = drawn < 2 ? kA : drawn == 2 ? kB : kC;
      if (letter == kA) ++run;
      if (letter == kB) run = 0;
      found |= run >= spec().blocks;
      inputs[as_size(i)] = letter;
      targets[as_size(i)] = found ? 1 : 0;
    }
    return 0;
  }
};

/// Tokens: 0 .. kinds - 1 open, kinds .. 2 kinds - 1 close. Every example fills the context.
class Dyck : public Task {
 public:
  Dyck(TaskSpec spec, std::int64_t context) : Task(std::move(spec), context) {}
  std::int64_t vocabulary() const override { return 2 * spec().symbols; }

 private:
  std::int64_t make(Draws& draws, ExampleUse /*use*/, std::span<TokenId> inputs,
                    std::span<TokenId> targets) const override {
    std::vector<TokenId> open;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const bool opens = open.empty() || (std::ssize(open) < spec().depth && draws.below(2) == 0);
      if (opens) {
        open.push_back(static_cast<TokenId>(draws.below(spec().symbols)));
        inputs[i] = open.back();
      } else {
        inputs[i] = static_cast<TokenId>(spec().symbols + open.back());
        open.pop_back();
      }
      targets[i] = open.empty() ? 0 : 1 + open.back();
    }
    return 0;
  }
};

void resolve_strings(TaskSpec& spec, std::int64_t context, std::int64_t shortest) {
  resolve_number("blocks", spec.blocks, 3, 1, 1 << 16);
  resolve_range("lengths", spec.lengths, {51, 100}, shortest);
  resolve_range("eval_lengths", spec.eval_lengths, {101, 150}, shortest);
  require_context(spec, context, 1 + std::max(spec.lengths[1], spec.eval_lengths[1]));
}

}  // namespace

std::unique_ptr<const Task> make_counting(TaskSpec spec, std::int64_t context) {
  resolve_strings(spec, context, std::max<std::int64_t>(1, spec.blocks));
  return std::make_unique<Counting>(std::move(spec), context);
}

std::unique_ptr<const Task> make_stair(TaskSpec spec, std::int64_t context) {
  resolve_strings(spec, context, 1);
  return std::make_unique<Stair>(std::move(spec), context);
}

std::unique_ptr<const Task> make_dyck(TaskSpec spec, std::int64_t context) {
  resolve_number("symbols", spec.symbols, 2, 1, 1 << 16);
  resolve_number("depth", spec.depth, 8, 1, 1 << 16);
  return std::make_unique<Dyck>(std::move(spec), context);
}

}  // namespace fathom::data
