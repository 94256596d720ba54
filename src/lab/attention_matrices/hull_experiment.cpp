#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/text.h"
#include "core/units.h"
#include "lab/attention_matrices/matrix_experiments.h"
#include "lab/attention_matrices/softmax_hull.h"
#include "lab/frame/options.h"

namespace fathom::lab {
namespace {

constexpr int kHullVersion = 1;

std::vector<double> parse_weights(const std::string& text) {
  std::vector<double> weights;
  for (const std::string& word : split(text, ',')) {
    double value = 0;
    const char* end = word.data() + word.size();
    const auto [at, error] = std::from_chars(word.data(), end, value);
    if (error != std::errc{} || at != end || !std::isfinite(value) || std::fabs(value) > 1e6) {
      throw ConfigError(fmt::format("--weights '{}': '{}' is not a number up to 1e6; write 2,-1",
                                    printable(text), printable(word)));
    }
    weights.push_back(value);
  }
  return weights;
}

/// The claim's list: the target of the criterion first.
std::vector<std::string> targets(const Setup& setup) {
  if (setup.own) return {setup.text("weights")};
  return {setup.text("weights"), "2,-1,0", "1,1,-1", "1,-1", "0.5,0.5"};
}

std::vector<Part> plan_hull(const Setup& setup) {
  std::vector<Part> parts;
  for (const std::string& text : targets(setup)) {
    const std::vector<double> weights = parse_weights(text);
    const bool equal = std::all_of(weights.begin(), weights.end(),
                                   [&](double weight) { return weight == weights.front(); });
    if (!(equal && !setup.own)) measure_hull(weights);  // throws for meaningless weights
    parts.push_back({fmt::format("hull v{} weights={}", kHullVersion, text), 1,
                     [weights, equal](const Ticker&) {
                       if (equal) return Json{{"floor", softmax_floor(weights)}, {"inside", true}};
                       const HullResult found = measure_hull(weights);
                       return Json{{"floor", found.floor},
                                   {"gain", found.gain},
                                   {"variance", found.variance},
                                   {"normalised_error", found.normalised_error},
                                   {"two_head_error", found.two_head_error}};
                     }});
  }
  return parts;
}

Conclusion conclude_hull(const Setup& setup, const std::vector<Json>& results) {
  Conclusion conclusion;
  conclusion.data = results.front();
  conclusion.data["targets"] = Json::array();
  ExhibitTable table{"Mean squared error of one softmax head at its best, largest error of others",
                     {"target weights", "softmax, at least", "answering 0", "normalised head",
                      "two softmax heads"},
                     {}};
  const std::vector<std::string> texts = targets(setup);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const Json& found = results[i];
    Json entry{{"weights", texts[i]}};
    entry.update(found);
    conclusion.data["targets"].push_back(std::move(entry));
    const auto number = [&](const char* key) {
      return found.contains(key) ? format_significant(found[key].get<double>(), 3) : "-";
    };
    table.rows.push_back({texts[i], number("floor"), number("variance"), number("normalised_error"),
                          number("two_head_error")});
  }
  conclusion.measures = {{"floor", results.front().at("floor").get<double>()},
                         {"normalised", results.front().at("normalised_error").get<double>()}};
  conclusion.tables.push_back(std::move(table));
  conclusion.notes.push_back(
      "the floor holds for any scores, however the head computes them; it needs values that are "
      "one "
      "linear map of the tokens' contents: values that know which token they belong to, or a "
      "second "
      "head, lift it");
  return conclusion;
}

}  // namespace

Experiment softmax_hull_experiment() {
  return {"softmax-hull",
          {text_option("weights", "2,-1", "W,W",
                       "Weights of the tokens in the target, 2 to 16 numbers")},
          plan_hull,
          conclude_hull};
}

}  // namespace fathom::lab
