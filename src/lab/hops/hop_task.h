// The k-hop induction task of arXiv 2402.09268: from position i jump k times to the place after the
// previous occurrence of the current character; the answer is the character there.
//
// Characters are 0 .. alphabet - 1; no two neighbours are equal, as in the authors' generator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fathom::lab {

using Characters = std::vector<std::uint8_t>;

/// Sequence `index` of a seed: a pure function.
Characters hop_sequence(std::size_t length, std::size_t alphabet, std::uint64_t seed,
                        std::uint64_t index);

/// Answer by position, from the definition; kNoHop where a jump leads nowhere.
inline constexpr int kNoHop = -1;
std::vector<int> hop_answers(const Characters& sequence, std::size_t hops);

}  // namespace fathom::lab
