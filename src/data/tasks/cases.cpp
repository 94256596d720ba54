// The case task and the local/global task of arXiv 2005.09561: which token to point at depends on
// whether a marker occurs anywhere. Letters are drawn uniformly; with V letters the markers are
// V 64/100 and V/2, with the published V of 100 therefore 64 and 50.
//
//   cases          n letters, then a query token; its target is a position:
//                  of the first least letter when 64 occurs, else 0 when 50 occurs, else of the
//                  first greatest letter
//   local-global   n letters; the target of every position is the position itself when 64 occurs,
//                  else that of the first least letter
//
// Training draws sequences as they come; held-out ones are balanced over the cases. Group: case.
#include <fmt/format.h>

#include <algorithm>

#include "core/counts.h"
#include "data/tasks/generators.h"

namespace fathom::data {
namespace {

class MarkerTask : public Task {
 public:
  MarkerTask(TaskSpec spec, std::int64_t context) : Task(std::move(spec), context) {}
  std::string group_name() const override { return "case"; }

 protected:
  TokenId high_marker() const { return static_cast<TokenId>(spec().symbols * 64 / 100); }
  TokenId middle_marker() const { return static_cast<TokenId>(spec().symbols / 2); }
  TokenId letter(Draws& draws) const { return static_cast<TokenId>(draws.below(spec().symbols)); }

  static bool has(std::span<const TokenId> letters, TokenId marker) {
    return std::find(letters.begin(), letters.end(), marker) != letters.end();
  }
  /// Replaces all letters that are one of the markers.
  template <class IsMarker>
  void clear(Draws& draws, std::span<TokenId> letters, const IsMarker& is_marker) const {
    for (TokenId& each : letters) {
      while (is_marker(each)) each = letter(draws);
    }
  }
  static void plant(Draws& draws, std::span<TokenId> letters, TokenId marker) {
    if (!has(letters, marker)) letters[as_size(draws.below(std::ssize(letters)))] = marker;
  }
  static TokenId first_least(std::span<const TokenId> letters) {
    return static_cast<TokenId>(std::min_element(letters.begin(), letters.end()) - letters.begin());
  }
};

class Cases : public MarkerTask {
 public:
  using MarkerTask::MarkerTask;
  std::int64_t vocabulary() const override { return std::max(spec().symbols + 1, context() - 1); }

 private:
  enum Case : std::uint8_t { least, first, greatest };

  std::int64_t make(Draws& draws, ExampleUse use, std::span<TokenId> inputs,
                    std::span<TokenId> targets) const override {
    const std::span<TokenId> letters = inputs.first(inputs.size() - 1);
    for (TokenId& each : letters) each = letter(draws);
    if (use == ExampleUse::held_out) bring_about(static_cast<Case>(draws.below(3)), draws, letters);
    inputs.back() = static_cast<TokenId>(spec().symbols);
    if (has(letters, high_marker())) {
      targets.back() = first_least(letters);
      return least;
    }
    if (has(letters, middle_marker())) {
      targets.back() = 0;
      return first;
    }
    const auto top = std::max_element(letters.begin(), letters.end());
    targets.back() = static_cast<TokenId>(top - letters.begin());
    return greatest;
  }

  void bring_about(Case which, Draws& draws, std::span<TokenId> letters) const {
    if (which == least) return plant(draws, letters, high_marker());
    clear(draws, letters, [&](TokenId each) {
      return each == high_marker() || (which == greatest && each == middle_marker());
    });
    if (which == first) plant(draws, letters, middle_marker());
  }
};

class LocalGlobal : public MarkerTask {
 public:
  using MarkerTask::MarkerTask;
  std::int64_t vocabulary() const override { return std::max(spec().symbols, context()); }

 private:
  std::int64_t make(Draws& draws, ExampleUse use, std::span<TokenId> inputs,
                    std::span<TokenId> targets) const override {
    for (TokenId& each : inputs) each = letter(draws);
    if (use == ExampleUse::held_out) {
      if (draws.below(2) == 0) {
        plant(draws, inputs, high_marker());
      } else {
        clear(draws, inputs, [&](TokenId each) { return each == high_marker(); });
      }
    }
    const bool local = has(inputs, high_marker());
    for (std::size_t t = 0; t < targets.size(); ++t) {
      targets[t] = local ? static_cast<TokenId>(t) : first_least(inputs);
    }
    return local ? 0 : 1;
  }
};

/// From 4 letters on, the markers differ from each other and leave other letters.
void resolve_markers(TaskSpec& spec, std::int64_t context) {
  resolve_number("symbols", spec.symbols, 100, 8, 1 << 20);
  require_context(spec, context, 3);
}

}  // namespace

std::unique_ptr<const Task> make_cases(TaskSpec spec, std::int64_t context) {
  resolve_markers(spec, context);
  return std::make_unique<Cases>(std::move(spec), context);
}

std::unique_ptr<const Task> make_local_global(TaskSpec spec, std::int64_t context) {
  resolve_markers(spec, context);
  return std::make_unique<LocalGlobal>(std::move(spec), context);
}

}  // namespace fathom::data
