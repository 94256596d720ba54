#include "lab/hard_attention/syntactic_monoid.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>
#include <vector>

#include "core/hash.h"
#include "core/memory.h"

namespace fathom::lab {
namespace {

/// All elements one after another; a set of their indices finds equal ones by content.
class Elements {
 public:
  explicit Elements(std::size_t states) : states_(states), found_(16, Hash{this}, Equal{this}) {}
  Elements(const Elements&) = delete;
  Elements& operator=(const Elements&) = delete;

  const std::uint32_t* at(std::size_t element) const { return &images_[element * states_]; }
  std::size_t size() const { return images_.size() / states_; }

  /// Adds the map that is `element` followed by the letter, unless it is known.
  void extend(std::size_t element, const Dfa& dfa, std::size_t letter) {
    const std::size_t place = images_.size();
    images_.resize(place + states_);
    for (std::size_t s = 0; s < states_; ++s) {
      images_[place + s] = dfa.step(images_[element * states_ + s], letter);
    }
    if (!found_.insert(place / states_).second) images_.resize(place);
  }

  void add_identity() {
    for (std::size_t s = 0; s < states_; ++s) images_.push_back(static_cast<std::uint32_t>(s));
    found_.insert(0);
  }

 private:
  struct Hash {
    const Elements* all;
    std::size_t operator()(std::size_t element) const {
      const char* begin = reinterpret_cast<const char*>(all->at(element));
      return hash_bytes({begin, all->states_ * sizeof(std::uint32_t)}).low;
    }
  };
  struct Equal {
    const Elements* all;
    bool operator()(std::size_t a, std::size_t b) const {
      return std::memcmp(all->at(a), all->at(b), all->states_ * sizeof(std::uint32_t)) == 0;
    }
  };

  std::size_t states_;
  std::vector<std::uint32_t> images_;
  std::unordered_set<std::size_t, Hash, Equal> found_;
};

/// Whether the powers of a map settle on a fixed one: whether no state lies on a cycle of length
/// above 1 under it.
bool powers_settle(const std::uint32_t* map, std::size_t states) {
  std::vector<std::uint32_t> seen_from(states, 0);  // 1 + the state whose walk came by first
  for (std::size_t start = 0; start < states; ++start) {
    std::size_t s = start;
    while (seen_from[s] == 0) {
      seen_from[s] = static_cast<std::uint32_t>(start + 1);
      s = map[s];
    }
    const bool new_cycle = seen_from[s] == start + 1;
    if (new_cycle && map[s] != s) return false;
  }
  return true;
}

}  // namespace

SyntacticMonoid syntactic_monoid(const Dfa& dfa, const std::function<void()>& look,
                                 double limit_bytes) {
  constexpr double kOverhead = 48;  // of an entry of the set
  constexpr double kShareOfMemory = 0.25;
  constexpr std::size_t kOften = 256;
  const double bytes_each = static_cast<double>(dfa.states()) * sizeof(std::uint32_t) + kOverhead;
  SyntacticMonoid monoid;
  const double limit = std::min(limit_bytes, kShareOfMemory * usable_memory_bytes());
  Elements elements(dfa.states());
  elements.add_identity();
  for (std::size_t at = 0; at < elements.size(); ++at) {
    if (static_cast<double>(elements.size()) * bytes_each > limit) {
      monoid.complete = false;
      break;
    }
    if (look && at % kOften == 0) look();
    for (std::size_t a = 0; a < dfa.letters(); ++a) elements.extend(at, dfa, a);
  }
  monoid.size = elements.size();
  bool settles = true;
  for (std::size_t i = 0; i < elements.size() && settles; ++i) {
    if (look && i % kOften == 0) look();
    settles = powers_settle(elements.at(i), dfa.states());
  }
  if (!settles) monoid.star_free = false;
  if (settles && monoid.complete) monoid.star_free = true;
  return monoid;
}

}  // namespace fathom::lab
