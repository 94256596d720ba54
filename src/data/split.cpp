#include "data/split.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"
#include "core/hash.h"
#include "core/random.h"

namespace fathom::data {

std::int64_t documents_for_share(double share) {
  return static_cast<std::int64_t>(std::ceil(3 / share));  // (1 - s)^(3/s) < e^-3 < 1/20
}

void check(const SplitRule& rule) {
  if (!(rule.valid >= 0) || !(rule.test >= 0) || !(rule.valid + rule.test < 1)) {
    throw ConfigError(fmt::format(
        "the valid and test shares must not be negative and leave something for training: {} + {}",
        rule.valid, rule.test));
  }
}

Split split_of(std::string_view head, const SplitRule& rule) {
  const Hash128 hash = hash_bytes(head.substr(0, kSplitHeadBytes));
  const double u = RandomStream(rule.seed, hash.high).uniform(hash.low);
  if (u < rule.valid) return Split::valid;
  return u < rule.valid + rule.test ? Split::test : Split::train;
}

}  // namespace fathom::data
