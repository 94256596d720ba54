#include "lab/hard_attention/position_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "lab/hard_attention/type_table.h"

namespace fathom::lab {
namespace {

/// Between the left and the right list of a type.
constexpr std::uint32_t kSeparator = 0xfffffffe;
constexpr std::size_t kNever = static_cast<std::size_t>(-1);

/// All words up to a length, shorter ones first, with the types of their positions.
class Words {
 public:
  Words(const Dfa& dfa, std::size_t length, Logic logic)
      : dfa_(dfa), length_(length), logic_(logic) {
    std::vector<std::uint32_t> states{static_cast<std::uint32_t>(dfa.start)};
    for (std::size_t l = 0; l <= length; ++l) {
      firsts_.push_back(members_.size());
      starts_.push_back(types_.size());
      for (std::size_t r = 0; r < states.size(); ++r) {
        members_.push_back(dfa.accepts[states[r]]);
        const std::string letters = text(l, r);
        for (const char c : letters) {
          types_.push_back(static_cast<std::uint32_t>(dfa.alphabet.find(c)));
        }
        types_.push_back(static_cast<std::uint32_t>(dfa.letters()));  // the end marker
      }
      if (l == length) break;
      std::vector<std::uint32_t> longer;
      for (const std::uint32_t state : states) {
        for (std::size_t a = 0; a < dfa.letters(); ++a) longer.push_back(dfa.step(state, a));
      }
      states = std::move(longer);
    }
    firsts_.push_back(members_.size());
    type_count_ = dfa.letters() + 1;
  }

  /// From depth-k types to depth k+1.
  void deepen(const std::function<void(double)>& progress, double from, double to) {
    TypeTable table;
    std::vector<std::uint32_t> next(types_.size());
    std::vector<std::uint32_t> stamps(type_count_, 0);
    std::vector<std::uint32_t> key;
    std::uint32_t stamp = 0;
    for (std::size_t l = 0; l <= length_; ++l) {
      for (std::size_t r = 0; r < count(l); ++r) {
        const std::size_t begin = starts_[l] + r * (l + 1);
        const std::uint32_t* types = &types_[begin];
        for (std::size_t i = 0; i <= l; ++i) {
          key.assign(1, types[i]);
          ++stamp;
          for (std::size_t j = i; j-- > 0;) add_new(types[j], stamp, stamps, key);
          if (logic_ == Logic::since_until) {
            key.push_back(kSeparator);
            ++stamp;
            for (std::size_t j = i + 1; j <= l; ++j) add_new(types[j], stamp, stamps, key);
          }
          next[begin + i] = table.number(key);
        }
        const bool restart = stamp > 0xf0000000;
        if (restart) {
          std::fill(stamps.begin(), stamps.end(), 0);
          stamp = 0;
        }
      }
      if (progress) {
        progress(from + (to - from) * static_cast<double>(firsts_[l + 1]) /
                            static_cast<double>(members_.size()));
      }
    }
    types_ = std::move(next);
    type_count_ = table.size();
  }

  /// The shortest pair of equal type, one in and one out; the longer length, kNever for none.
  struct Shortest {
    std::size_t length = kNever;
    std::string in;
    std::string out;
  };
  Shortest collision() const {
    struct Class {
      std::size_t in = kNever;
      std::size_t out = kNever;
    };
    std::vector<Class> classes(type_count_);
    Shortest best;
    for (std::size_t l = 0; l <= length_ && best.length == kNever; ++l) {
      for (std::size_t r = 0; r < count(l); ++r) {
        const std::size_t word = firsts_[l] + r;
        Class& mine = classes[end_type(l, r)];
        std::size_t& place = members_[word] ? mine.in : mine.out;
        if (place == kNever) place = word;
        if (mine.in != kNever && mine.out != kNever) {
          best = {l, text_of(mine.in), text_of(mine.out)};
          break;
        }
      }
    }
    return best;
  }

  /// How many different types the end markers have.
  std::size_t classes() const {
    std::vector<bool> seen(type_count_);
    std::size_t found = 0;
    for (std::size_t l = 0; l <= length_; ++l) {
      for (std::size_t r = 0; r < count(l); ++r) {
        const std::uint32_t type = end_type(l, r);
        if (!seen[type]) ++found;
        seen[type] = true;
      }
    }
    return found;
  }

 private:
  static void add_new(std::uint32_t type, std::uint32_t stamp, std::vector<std::uint32_t>& stamps,
                      std::vector<std::uint32_t>& key) {
    if (stamps[type] == stamp) return;
    stamps[type] = stamp;
    key.push_back(type);
  }

  std::size_t count(std::size_t length) const { return firsts_[length + 1] - firsts_[length]; }
  std::uint32_t end_type(std::size_t length, std::size_t r) const {
    return types_[starts_[length] + r * (length + 1) + length];
  }
  /// The r-th word of a length, the last letter changing fastest.
  std::string text(std::size_t length, std::size_t r) const {
    std::string word(length, ' ');
    for (std::size_t i = length; i-- > 0; r /= dfa_.letters()) {
      word[i] = dfa_.alphabet[r % dfa_.letters()];
    }
    return word;
  }
  std::string text_of(std::size_t word) const {
    const auto level = std::upper_bound(firsts_.begin(), firsts_.end(), word) - 1;
    return text(static_cast<std::size_t>(level - firsts_.begin()), word - *level);
  }

  const Dfa& dfa_;
  std::size_t length_;
  Logic logic_;
  std::vector<std::size_t> firsts_;  // first word of each length, and the number of words
  std::vector<std::size_t> starts_;  // where the types of each length begin
  std::vector<bool> members_;
  std::vector<std::uint32_t> types_;  // word after word, its positions and its end marker
  std::size_t type_count_ = 0;
};

}  // namespace

LanguageDepth language_depth(const Dfa& dfa, std::size_t length, Logic logic,
                             const std::function<void(double)>& progress) {
  Words words(dfa, length, logic);
  LanguageDepth result;
  result.depths.resize(length);
  constexpr double kSteps = kMaxDepth + 1;
  for (std::size_t depth = 0; depth <= kMaxDepth; ++depth) {
    const Words::Shortest shortest = words.collision();
    result.classes.push_back(words.classes());
    for (std::size_t n = 1; n <= length; ++n) {
      if (!result.depths[n - 1] && n < shortest.length) result.depths[n - 1] = depth;
    }
    if (shortest.length == kNever) break;
    result.witness = Collision{shortest.in, shortest.out, depth};
    if (depth < kMaxDepth) {
      words.deepen(progress, static_cast<double>(depth) / kSteps,
                   static_cast<double>(depth + 1) / kSteps);
    }
  }
  return result;
}

TypeCost type_cost(std::size_t letters, std::size_t length, Logic logic) {
  // Measured on one core: about 4 ns a step of a walk; a type 60 ns, or 250 with its longer list.
  constexpr double kStep = 4e-9;
  const double kType = logic == Logic::since ? 6e-8 : 2.5e-7;
  TypeCost cost;
  double steps = 0;
  double positions = 0;
  double words = 1;
  for (std::size_t l = 0; l <= length; ++l) {
    const auto n = static_cast<double>(l);
    cost.words += words;
    positions += words * (n + 1);
    steps += words * n * (n + 1) / (logic == Logic::since ? 2 : 1);
    words *= static_cast<double>(letters);
  }
  cost.seconds = kMaxDepth * (steps * kStep + positions * kType);
  // Two sets of types; at worst every position has a list of its own.
  cost.bytes = 8 * positions + 4 * steps + 24 * positions;
  return cost;
}

bool same_type(const std::string& first, const std::string& second, std::size_t depth,
               Logic logic) {
  using Type = std::vector<int>;
  std::vector<std::vector<int>> types;  // of the two words, the end marker last
  for (const std::string* word : {&first, &second}) {
    types.emplace_back(word->begin(), word->end());
    types.back().push_back(-1);
  }
  for (std::size_t k = 0; k < depth; ++k) {
    std::map<Type, int> numbers;
    std::vector<std::vector<int>> deeper;
    for (const std::vector<int>& word : types) {
      deeper.emplace_back();
      const int size = static_cast<int>(word.size());
      for (int i = 0; i < size; ++i) {
        const auto distinct = [&](int from, int step) {
          Type list;
          for (int j = from; j >= 0 && j < size; j += step) {
            const int type = word[static_cast<std::size_t>(j)];
            if (std::find(list.begin(), list.end(), type) == list.end()) list.push_back(type);
          }
          return list;
        };
        Type type{word[static_cast<std::size_t>(i)]};
        const Type left = distinct(i - 1, -1);
        type.push_back(static_cast<int>(left.size()));
        type.insert(type.end(), left.begin(), left.end());
        if (logic == Logic::since_until) {
          const Type right = distinct(i + 1, 1);
          type.insert(type.end(), right.begin(), right.end());
        }
        deeper.back().push_back(
            numbers.emplace(type, static_cast<int>(numbers.size())).first->second);
      }
    }
    types = std::move(deeper);
  }
  return types[0].back() == types[1].back();
}

bool is_proof(const Dfa& dfa, const Collision& collision, Logic logic) {
  return dfa.contains(collision.in) && !dfa.contains(collision.out) &&
         same_type(collision.in, collision.out, collision.depth, logic);
}

}  // namespace fathom::lab
