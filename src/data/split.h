// Which split a document belongs to, from its own text and nothing else.
//
// u = Philox(seed; XXH3(first 4096 bytes of the document)) in [0, 1); u < valid goes to the
// validation split, u < valid + test to the test split, the rest to training. Order, names, threads
// and other documents do not matter; equal documents always land together, so a copy of a training
// document is never in held-out text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/enum_names.h"

namespace fathom::data {

enum class Split { train, valid, test };
constexpr auto enum_names(Split) {
  return std::array{"train", "valid", "test"};
}
inline constexpr auto kSplits = kEnumValues<Split>;

constexpr std::size_t kSplitHeadBytes = 4096;

struct SplitRule {
  double valid = 0.05;
  double test = 0.05;
  std::uint64_t seed = 0;
};

/// Documents it takes so that a split of this share is empty less than once in twenty (3 / share).
std::int64_t documents_for_share(double share);
/// ConfigError when a share is negative or both reach 1.
void check(const SplitRule& rule);
/// `head` is the document's beginning, at least its first 4096 bytes or all of it.
Split split_of(std::string_view head, const SplitRule& rule);

}  // namespace fathom::data
