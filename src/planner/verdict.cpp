#include "planner/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/counts.h"
#include "core/text.h"
#include "core/units.h"

namespace fathom::planner {
namespace {

/// Laws whose depths differ by more than this factor disagree.
constexpr double kDisagreement = 1.5;
/// Votes below this are left out of the range of the laws.
constexpr double kHeard = 0.1;

bool is_consensus(const Plan& plan) {
  return plan.law.name == laws::Consensus::kName;
}

/// The pick, or the best depth where constraints keep the pick out of the band.
double depth_in_band(const Plan& plan) {
  const double pick = as_double(plan.recommendation.shape.layers);
  return pick >= plan.band.low && pick <= plan.band.high ? pick : plan.best_layers;
}

/// "Gemstones 2025 and Liu 2026".
std::string names_of(const std::vector<std::string>& titles) {
  if (titles.size() < 2) return join(titles, "");
  const std::vector<std::string> head(titles.begin(), titles.end() - 1);
  return join(head, ", ") + " and " + titles.back();
}

void add_reason(Verdict& verdict, const Plan& plan) {
  verdict.evidence = plan.law_evidence;
  if (!is_consensus(plan)) {
    verdict.reason = plan.law_evidence == laws::Evidence::fitted
                         ? fmt::format("{} has data at this size, length and depth", plan.law.title)
                     : plan.law_evidence == laws::Evidence::convention
                         ? fmt::format("{} is a convention", plan.law.title)
                         : fmt::format("{} has no data here", plan.law.title);
    return;
  }
  std::vector<std::string> inside;
  for (const LawRow& row : plan.laws) {
    if (row.evidence == laws::Evidence::fitted) inside.push_back(row.info.title);
  }
  verdict.reason = inside.empty()
                       ? "no law has data at this size, length and depth; all of them extrapolate"
                       : fmt::format("{} {} data at this size, length and depth", names_of(inside),
                                     inside.size() == 1 ? "has" : "have");
}

/// The band, clipped at the depths that were trained where it lies among them, else at the deepest
/// that a law recommends.
void add_equals(Verdict& verdict, const Plan& plan) {
  const double pick = as_double(plan.recommendation.shape.layers);
  const Interval trained = trained_depths(plan);
  Interval band{std::max(1.0, plan.band.low), plan.band.high};
  const double inside = depth_in_band(plan);
  if (inside >= trained.low && inside <= trained.high) {
    verdict.clipped_low = band.low < trained.low;
    verdict.clipped_high = band.high > trained.high;
    band = {std::max(band.low, trained.low), std::min(band.high, trained.high)};
  } else {
    // Nothing was trained this deep: no farther than the deepest law goes.
    double deepest = std::max(inside, plan.unrounded.layers);
    for (const LawRow& row : plan.laws) {
      if (row.vote > 0) deepest = std::max(deepest, row.optimum.layers);
    }
    band.high = std::min(band.high, deepest);
  }
  verdict.equals = whole_depths(band);
  verdict.equals_evidence = plan.loss_law_evidence;
  for (const Candidate& candidate : plan.lattice) {
    const std::int64_t layers = candidate.shape.layers;
    if (layers < verdict.equals.low || layers > verdict.equals.high) continue;
    if (as_double(layers) < pick && !verdict.wider) verdict.wider = candidate;
    if (as_double(layers) > pick) verdict.deeper = candidate;
  }
}

void add_laws_range(Verdict& verdict, const Plan& plan) {
  for (const LawRow& row : plan.laws) {
    if (row.vote < kHeard) continue;
    if (verdict.lowest_law.empty() || row.optimum.layers < verdict.laws_range.low) {
      verdict.laws_range.low = row.optimum.layers;
      verdict.lowest_law = row.info.title;
    }
    if (verdict.highest_law.empty() || row.optimum.layers > verdict.laws_range.high) {
      verdict.laws_range.high = row.optimum.layers;
      verdict.highest_law = row.info.title;
    }
  }
  verdict.laws_disagree = !verdict.lowest_law.empty() &&
                          verdict.laws_range.high > kDisagreement * verdict.laws_range.low;
}

void add_practice(Verdict& verdict, const Plan& plan) {
  const std::int64_t pick = plan.recommendation.shape.layers;
  verdict.practice = published_depths(as_double(plan.parameters.non_embedding()));
  verdict.leaves_practice =
      verdict.practice && (pick < verdict.practice->low || pick > verdict.practice->high);
}

/// "35 % faster", "as fast", "12 % slower".
std::string speed_text(double seconds, double reference) {
  const double gain = 100 * (reference / seconds - 1);
  if (std::fabs(gain) < 3) return "as fast";
  return gain > 0 ? fmt::format("{:.0f} % faster", gain)
                  : fmt::format("{:.0f} % slower", 100 * (1 - reference / seconds));
}

std::string trade_text(const char* way, const Candidate& other, const Candidate& pick) {
  const std::string train = speed_text(other.train_seconds, pick.train_seconds);
  const std::string decode = speed_text(other.decode_seconds, pick.decode_seconds);
  return fmt::format("{} ({}) costs {} loss, {}", way, depth_by_width(other.shape),
                     format_percent(other.penalty - pick.penalty),
                     train == decode ? "trains and decodes " + train
                                     : fmt::format("trains {} and decodes {}", train, decode));
}

std::string equals_sentence(const Verdict& verdict, const Plan& plan) {
  const std::string mark = to_string(verdict.equals_evidence);
  const std::string within = fmt::format("{:.2g} %", 100 * plan.request.tolerance);
  const std::int64_t pick = plan.recommendation.shape.layers;
  const std::string range = fmt::format("{} to {} layers", verdict.equals.low, verdict.equals.high);
  if (pick < verdict.equals.low || pick > verdict.equals.high) {
    return fmt::format("The constraints cost {} loss ({}): {} would stay within {} of the best.",
                       format_percent(plan.recommendation.penalty), mark, range, within);
  }
  if (verdict.equals.low == verdict.equals.high) {
    return fmt::format("No other depth stays within {} of its loss ({}).", within, mark);
  }
  if (verdict.clipped_low && verdict.clipped_high) {
    return fmt::format(
        "All depths that were trained, {}, are as good: the loss stays within {} of the best ({}).",
        range, within, mark);
  }
  return fmt::format(
      "{} are as good: the loss stays within {} of the best ({}{}).", range, within, mark,
      verdict.clipped_high
          ? fmt::format("; {} is the deepest that was trained{}", verdict.equals.high,
                        verdict.equals_evidence == laws::Evidence::fitted ? " at this size" : "")
          : "");
}

}  // namespace

Interval trained_depths(const Plan& plan) {
  if (!is_consensus(plan)) return plan.law.layers;
  const double inside = depth_in_band(plan);
  const double parameters = plan.budget.block_parameters_at(inside);
  std::optional<Interval> trained;
  for (const LawRow& row : plan.laws) {
    const Interval& depths = row.info.layers;
    if (row.vote == 0 || !row.band ||
        laws::distance_outside(row.info, {parameters, plan.tokens, depths.low}) > 0) {
      continue;
    }
    trained =
        trained ? Interval{std::min(trained->low, depths.low), std::max(trained->high, depths.high)}
                : depths;
  }
  const bool holds_it = trained && inside >= trained->low && inside <= trained->high;
  return holds_it ? *trained : plan.law.layers;
}

Verdict make_verdict(const Plan& plan) {
  Verdict verdict;
  add_reason(verdict, plan);
  add_equals(verdict, plan);
  add_laws_range(verdict, plan);
  add_practice(verdict, plan);

  const Shape& shape = plan.recommendation.shape;
  auto& sentences = verdict.sentences;
  sentences.push_back(
      fmt::format("Take {} {} × {} wide: {} {} of {}{}, ffn {}{}.", shape.layers,
                  shape.layers == 1 ? "layer" : "layers", shape.width, shape.heads,
                  shape.heads == 1 ? "head" : "heads", shape.head_size,
                  shape.kv_heads == shape.heads ? "" : fmt::format(" ({} kv)", shape.kv_heads),
                  shape.ffn, shape.gated() ? " gated" : ""));
  sentences.push_back(equals_sentence(verdict, plan));
  std::vector<std::string> trades;
  if (verdict.wider) trades.push_back(trade_text("Wider", *verdict.wider, plan.recommendation));
  if (verdict.deeper) {
    trades.push_back(
        trade_text(verdict.wider ? "deeper" : "Deeper", *verdict.deeper, plan.recommendation));
  }
  if (!trades.empty()) sentences.push_back(join(trades, "; ") + ".");
  if (verdict.laws_disagree) {
    sentences.push_back(fmt::format("The laws disagree: {} asks for {:.0f} layers, {} for {:.0f}.",
                                    verdict.lowest_law, verdict.laws_range.low, verdict.highest_law,
                                    verdict.laws_range.high));
  }
  if (verdict.leaves_practice) {
    const bool shallower = shape.layers > verdict.practice->high;
    sentences.push_back(
        fmt::format("Published models of this size have {} to {} layers. {}", verdict.practice->low,
                    verdict.practice->high,
                    shallower ? "Follow them for latency and tensor parallelism, which favour "
                                "width; the laws for loss."
                              : "They are deeper; this budget or its constraints ask for less."));
  }
  return verdict;
}

}  // namespace fathom::planner
