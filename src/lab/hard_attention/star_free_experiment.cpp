#include <fmt/format.h>

#include <set>

#include "core/units.h"
#include "lab/frame/options.h"
#include "lab/hard_attention/hard_attention_experiments.h"
#include "lab/hard_attention/position_types.h"
#include "lab/hard_attention/syntactic_monoid.h"

namespace fathom::lab {
namespace {

constexpr int kStarFreeVersion = 1;
/// A language whose depth has not moved over this many lengths has settled.
constexpr std::size_t kSettled = 3;

/// Every language over {a, b} whose minimal automaton has exactly this many states, once.
std::vector<Dfa> all_languages(std::size_t states) {
  std::vector<Dfa> languages;
  if (states == 0) return languages;
  std::set<std::pair<std::vector<std::uint32_t>, std::vector<bool>>> seen;
  std::size_t tables = 1;
  for (std::size_t i = 0; i < 2 * states; ++i) tables *= states;
  for (std::size_t t = 0; t < tables; ++t) {
    for (std::size_t f = 0; f < std::size_t{1} << states; ++f) {
      Dfa dfa;
      dfa.alphabet = "ab";
      for (std::size_t s = 0; s < states; ++s) dfa.accepts.push_back((f >> s & 1) != 0);
      for (std::size_t i = 0, rest = t; i < 2 * states; ++i, rest /= states) {
        dfa.next.push_back(static_cast<std::uint32_t>(rest % states));
      }
      const Dfa least = minimal(dfa);
      if (least.states() == states && seen.insert({least.next, least.accepts}).second) {
        languages.push_back(least);
      }
    }
  }
  return languages;
}

struct Count {
  std::size_t languages = 0;
  std::size_t star_free = 0;
  std::size_t settled = 0;
  std::size_t disagreements = 0;
  std::size_t largest_depth = 0;  // of star-free ones
};

/// The languages of one size, `first`, `first + step`, ...
Json count_languages(std::size_t states, std::size_t length, std::size_t first, std::size_t step,
                     const Ticker& tick) {
  const std::vector<Dfa> languages = all_languages(states);
  Count count;
  for (std::size_t i = first; i < languages.size(); i += step) {
    tick(static_cast<double>(i) / static_cast<double>(languages.size()));
    const LanguageDepth found = language_depth(languages[i], length, Logic::since);
    const bool star_free = syntactic_monoid(languages[i]).star_free.value();
    const auto last = found.depths.back();
    const bool settled = last && last == found.depths[length - 1 - kSettled];
    ++count.languages;
    count.star_free += star_free ? 1 : 0;
    count.settled += settled ? 1 : 0;
    count.disagreements += star_free != settled ? 1 : 0;
    if (star_free && last) count.largest_depth = std::max(count.largest_depth, *last);
  }
  return {{"languages", count.languages},
          {"star_free", count.star_free},
          {"settled", count.settled},
          {"disagreements", count.disagreements},
          {"largest_depth", count.largest_depth}};
}

constexpr std::size_t kShares = 4;

std::vector<Part> plan_star_free(const Setup& setup) {
  const std::size_t length = setup.size("length");
  const TypeCost cost = type_cost(2, length, Logic::since);
  check_cost(setup, fmt::format("1,054 languages on words of up to {} letters", length),
             1054 * cost.seconds, cost.bytes * static_cast<double>(setup.threads));
  std::vector<Part> parts;
  for (std::size_t states = 1; states <= setup.size("states"); ++states) {
    const std::size_t shares = states < 3 ? 1 : kShares;
    for (std::size_t share = 0; share < shares; ++share) {
      parts.push_back({fmt::format("star-free v{} states={} length={} share={}/{}",
                                   kStarFreeVersion, states, length, share, shares),
                       states < 3 ? 0.02 : 1.0, [=](const Ticker& tick) {
                         return count_languages(states, length, share, shares, tick);
                       }});
    }
  }
  return parts;
}

Conclusion conclude_star_free(const Setup& setup, const std::vector<Json>& results) {
  Conclusion conclusion;
  ExhibitTable table{
      fmt::format("Languages over two letters, words of up to {}", setup.size("length")),
      {"states", "languages", "star-free", "depth has settled", "disagreements"},
      {}};
  const auto whole = [](std::size_t n) { return format_whole(static_cast<std::int64_t>(n)); };
  std::size_t part = 0;
  Count all;
  for (std::size_t states = 1; states <= setup.size("states"); ++states) {
    Count count;
    for (std::size_t share = 0; share < (states < 3 ? 1 : kShares); ++share, ++part) {
      const Json& found = results[part];
      count.languages += found.at("languages").get<std::size_t>();
      count.star_free += found.at("star_free").get<std::size_t>();
      count.settled += found.at("settled").get<std::size_t>();
      count.disagreements += found.at("disagreements").get<std::size_t>();
      all.largest_depth = std::max(all.largest_depth, found.at("largest_depth").get<std::size_t>());
    }
    table.rows.push_back({std::to_string(states), whole(count.languages), whole(count.star_free),
                          whole(count.settled), whole(count.disagreements)});
    all.languages += count.languages;
    all.star_free += count.star_free;
    all.disagreements += count.disagreements;
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.data = {{"languages", all.languages},
                     {"star_free", all.star_free},
                     {"disagreements", all.disagreements},
                     {"largest_depth", all.largest_depth}};
  conclusion.measures = {{"disagreements", static_cast<double>(all.disagreements)}};
  conclusion.notes.push_back(fmt::format(
      "settled: the least depth is the same at lengths {} and {}, and at most {}; star-freeness is "
      "decided by the syntactic monoid",
      setup.size("length") - kSettled, setup.size("length"), kMaxDepth));
  return conclusion;
}

}  // namespace

Experiment star_free_experiment() {
  Option length = integer_option("length", 11, "N", "All words up to this length", 8, 20);
  length.quick = 10;
  return {"star-free",
          {integer_option("states", 3, "N", "Automata of up to this many states", 1, 3), length},
          plan_star_free,
          conclude_star_free};
}

}  // namespace fathom::lab
