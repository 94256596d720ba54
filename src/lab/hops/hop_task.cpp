#include "lab/hops/hop_task.h"

#include "core/random.h"

namespace fathom::lab {

Characters hop_sequence(std::size_t length, std::size_t alphabet, std::uint64_t seed,
                        std::uint64_t index) {
  constexpr std::uint64_t kStream = 0x686f7073;  // "hops"
  const RandomStream random(seed, kStream + (index << 32));
  Characters sequence;
  for (std::size_t i = 0; i < length; ++i) {
    // Any letter except the previous one.
    std::uint64_t letter = random.below(i, i == 0 ? alphabet : alphabet - 1);
    if (i > 0 && letter >= sequence.back()) ++letter;
    sequence.push_back(static_cast<std::uint8_t>(letter));
  }
  return sequence;
}

std::vector<int> hop_answers(const Characters& sequence, std::size_t hops) {
  const auto size = static_cast<int>(sequence.size());
  const auto at = [&](int i) { return sequence[static_cast<std::size_t>(i)]; };
  std::vector<int> answers;
  for (int i = 0; i < size; ++i) {
    int place = i;
    for (std::size_t hop = 0; hop < hops && place >= 0; ++hop) {
      int earlier = place - 1;
      while (earlier >= 0 && at(earlier) != at(place)) --earlier;
      place = earlier < 0 ? kNoHop : earlier + 1;
    }
    answers.push_back(place < 0 ? kNoHop : at(place));
  }
  return answers;
}

}  // namespace fathom::lab
