#include "report/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/counts.h"
#include "core/units.h"
#include "fits/study_law.h"
#include "study/repetition.h"

namespace fathom::report {
namespace {

using fits::BestDepth;
using fits::StudyFit;
using fits::Transition;
using fits::TransitionStatus;
using study::RunRow;

/// Why the planner would not plan with the law at the largest size trained; empty: it would.
std::vector<std::string> objections(const StudyFit& fit) {
  const fits::StudyLaw law(fits::study_law_data(fit));
  const laws::Budget budget = laws::Budget::non_embedding(fit.params.high, fit.block_coefficient);
  return law.objections(budget, fit.token_rule.at(fit.params.high));
}

/// The depth to take at the largest size, as far as the runs determine it.
std::optional<Advice> take_depth(const AdviceGround& ground) {
  if (!ground.fit || !ground.fit->surface) return {};
  const StudyFit& fit = *ground.fit;
  const BestDepth& best = fit.surface->best_depth.back();
  const std::string size = format_count(best.params);
  Advice advice;
  if (best.low && best.high) {
    const double low = std::ceil(*best.low), high = std::floor(*best.high);
    const double layers = std::max(1.0, std::round(best.layers));
    const double width = std::sqrt(best.params / (fit.block_coefficient * layers));
    advice.text =
        fmt::format("At {} parameters take {:.0f} layers, about {:.0f} wide", size, layers, width);
    advice.text += high > low
                       ? fmt::format("; {:.0f} to {:.0f} layers cannot be told from it.", low, high)
                       : ".";
  } else if (best.low) {
    advice.text = fmt::format(
        "At {} parameters take more than {:.0f} layers; the deepest that were "
        "trained are not deep enough to show where to stop.",
        size, std::floor(*best.low));
  } else if (best.high) {
    advice.text = fmt::format(
        "At {} parameters take fewer than {:.0f} layers; the shallowest that "
        "were trained still win.",
        size, std::ceil(*best.high));
  } else {
    return {};
  }
  if (!ground.name.empty() && fit.has_law() && objections(fit).empty()) {
    advice.command = fmt::format("fathom plan {} --law study:{}", size, ground.name);
  }
  return advice;
}

const RunRow* best_run(const std::vector<RunRow>& rows) {
  const RunRow* best = nullptr;
  for (const RunRow& row : rows) {
    if (!has_result(row.status) || !std::isfinite(row.final_loss)) continue;
    if (best == nullptr || row.final_loss < best->final_loss) best = &row;
  }
  return best;
}

std::optional<Advice> take_best_run(const std::vector<RunRow>& rows) {
  const RunRow* best = best_run(rows);
  if (best == nullptr) return {};
  return Advice{
      fmt::format("No depth is shown to be best. Of the runs, {} layers × {} has the "
                  "lowest loss, {:.4f}.",
                  best->layers, best->width, best->final_loss)};
}

std::string sizes_text(double low, double high) {
  return fmt::format("{} to {}", format_count(low), format_count(high));
}

/// The runs that would decide the first neighbouring pair that is open.
std::optional<Advice> decide_pair(const std::vector<Transition>& transitions) {
  const auto open = std::find_if(transitions.begin(), transitions.end(), [](const Transition& t) {
    return t.adjacent && t.status != TransitionStatus::crossing;
  });
  if (open == transitions.end()) return {};
  const std::string pair = fmt::format("{} and {} layers", open->shallow, open->deep);
  switch (open->status) {
    case TransitionStatus::above_grid:
      return Advice{
          fmt::format("{} layers do not beat {} at any size trained. To see where they "
                      "do, train both larger: {} parameters.",
                      open->deep, open->shallow, sizes_text(open->grid_high, 4 * open->grid_high))};
    case TransitionStatus::below_grid:
      return Advice{
          fmt::format("{} layers beat {} at every size trained. To see from where "
                      "on, train both smaller: {} parameters.",
                      open->deep, open->shallow, sizes_text(open->grid_low / 4, open->grid_low))};
    default:
      return Advice{
          fmt::format("To tell {} apart, train more seeds at {} parameters; their losses "
                      "are within the noise.",
                      pair, sizes_text(open->grid_low, open->grid_high))};
  }
}

std::optional<Advice> mend_law(const StudyFit& fit) {
  if (!fit.has_law()) {
    const std::string why = fit.warnings.empty() ? "" : ": " + fit.warnings.front();
    return Advice{fmt::format("No law follows from these runs yet{}.", why)};
  }
  const std::vector<std::string> reasons = objections(fit);
  if (reasons.empty()) return {};
  return Advice{fmt::format("Do not plan with this law yet: {}.", reasons.front())};
}

std::optional<Advice> finish_runs(const AdviceGround& ground) {
  const auto open = std::count_if(ground.rows.begin(), ground.rows.end(), [](const RunRow& row) {
    return row.in_spec && !is_done(row.status);
  });
  if (open == 0 || ground.name.empty()) return {};
  return Advice{fmt::format("{} of {} runs are not done; the study continues where it stopped.",
                            open, ground.rows.size()),
                fmt::format("fathom study run {}", ground.name)};
}

std::optional<Advice> mend_divergence(const std::vector<RunRow>& rows) {
  const auto diverged = std::count_if(rows.begin(), rows.end(), [](const RunRow& row) {
    return row.status == study::RunStatus::diverged;
  });
  if (diverged == 0) return {};
  return Advice{
      fmt::format("{} of {} runs diverged. A lower learning rate or a longer warm-up may "
                  "save them; left out, they can bend the answer.",
                  diverged, rows.size())};
}

std::optional<Advice> use_more_text(const AdviceGround& ground) {
  if (ground.text_tokens == 0) return {};
  std::int64_t longest = 0;
  for (const RunRow& row : ground.rows) longest = std::max(longest, row.tokens);
  const std::string note = study::repetition_note(longest, ground.text_tokens);
  if (note.empty()) return {};
  return Advice{note + "."};
}

}  // namespace

std::vector<Advice> advise(const AdviceGround& ground) {
  std::vector<Advice> all;
  const auto add = [&](std::optional<Advice> advice) {
    if (advice) all.push_back(std::move(*advice));
  };
  const std::optional<Advice> depth = take_depth(ground);
  add(depth ? depth : take_best_run(ground.rows));
  add(finish_runs(ground));
  if (ground.fit) {
    add(decide_pair(ground.fit->surface ? ground.fit->surface->crossings
                                        : ground.fit->transitions));
    add(mend_law(*ground.fit));
  }
  add(mend_divergence(ground.rows));
  add(use_more_text(ground));
  return all;
}

}  // namespace fathom::report
