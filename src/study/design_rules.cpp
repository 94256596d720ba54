#include "study/design_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "core/units.h"

namespace fathom::study {
namespace {

/// A number inside a goal; errors in it are reported with the goal's place in the file.
template <class Parse>
auto number_of_goal(const TomlReader& table, const std::string& text, const Parse& parse) {
  static const std::string kKey = "decide";
  try {
    return parse(text, kKey);
  } catch (const ConfigError& error) {
    table.fail(kKey, std::string(error.what()).substr(kKey.size() + 1));
  }
}

fits::DesignGoal read_goal(const TomlReader& table, const std::string& text, double target) {
  static const std::string kBestDepth = "best depth at ";
  fits::DesignGoal goal;
  goal.target = target;
  const std::size_t over = text.find(" over ");
  if (text == "a") {
    goal.kind = fits::GoalKind::offset;
  } else if (text == "b") {
    goal.kind = fits::GoalKind::slope;
  } else if (text == "form") {
    goal.kind = fits::GoalKind::form;
  } else if (text.starts_with(kBestDepth)) {
    goal.kind = fits::GoalKind::best_depth;
    goal.params = number_of_goal(table, text.substr(kBestDepth.size()), parse_count);
  } else if (over != std::string::npos) {
    goal.kind = fits::GoalKind::crossing;
    goal.deep = number_of_goal(table, text.substr(0, over), parse_whole);
    goal.shallow = number_of_goal(table, text.substr(over + 6), parse_whole);
  } else {
    table.fail("decide",
               fmt::format("'{}' is not a goal; choose from a, b, \"12 over 6\", \"best depth at "
                           "10M\", form",
                           text));
  }
  return goal;
}

/// Target errors where the table gives none: errors that the choice of runs reaches for about a
/// third of a grid's cost or less (docs/studies.md).
double default_error(fits::GoalKind kind) {
  switch (kind) {
    case fits::GoalKind::offset:
      return 0.3;
    case fits::GoalKind::slope:
      return 0.03;
    case fits::GoalKind::crossing:
      return 0.2;
    case fits::GoalKind::best_depth:
      return 0.16;
    case fits::GoalKind::form:
      return 20;
  }
  return 0;
}

void read_goals(const TomlReader& table, DesignRules& design) {
  if (design.decide.empty()) table.fail("decide", "is missing; e.g. decide = \"b\"");
  if (!table.has("error")) {
    for (const std::string& text : design.decide) {
      design.error.push_back(default_error(read_goal(table, text, 0).kind));
    }
  }
  if (design.error.size() != design.decide.size()) {
    table.fail("error",
               fmt::format("must give one number for each of the {} goals", design.decide.size()));
  }
  for (std::size_t i = 0; i < design.decide.size(); ++i) {
    design.goals.push_back(read_goal(table, design.decide[i], design.error[i]));
    if (design.goals.back().kind == fits::GoalKind::form && design.error[i] <= 1) {
      table.fail("error", "of the form is the target odds, above 1, e.g. 20");
    }
  }
}

void read_cost(const TomlReader& table, DesignRules& design) {
  const std::array given{table.has("seconds"), table.has("flops"), table.has("runs")};
  const std::array values{design.seconds, design.flops, design.runs};
  const std::array keys{"seconds", "flops", "runs"};
  const auto named = std::count(given.begin(), given.end(), true);
  if (named == 0) table.fail("flops", "or seconds or runs: the allowed cost must be given");
  if (named > 1) {
    table.fail("flops", "and seconds and runs are three ways to give the allowed cost; keep one");
  }
  const auto place =
      static_cast<std::size_t>(std::find(given.begin(), given.end(), true) - given.begin());
  design.unit = static_cast<CostUnit>(place);
  design.budget = values[place];
  if (!(design.budget > 0)) table.fail(keys[place], "is zero: such a budget buys no run");
}

void read_limits(const TomlReader& table, DesignRules& design) {
  std::sort(design.depths.begin(), design.depths.end());
  design.depths.erase(std::unique(design.depths.begin(), design.depths.end()), design.depths.end());
  if (design.depths.size() < 3) {
    table.fail("depths", "must allow at least three depths; two do not make a law");
  }
  if (design.sizes.size() != 2) {
    table.fail("sizes", "must be the smallest and the largest, e.g. [\"400K\", \"20M\"]");
  }
  if (design.sizes[0] >= design.sizes[1]) {
    table.fail("sizes", fmt::format("contradict each other: the smallest, {}, is not below the "
                                    "largest, {}",
                                    format_count(design.sizes[0]), format_count(design.sizes[1])));
  }
  if (design.head_size != 16 && design.head_size != 32) {
    table.fail("head_size", "must be 16 or 32");
  }
}

}  // namespace

fits::CandidateLimits DesignRules::limits() const {
  fits::CandidateLimits limits;
  limits.depths = depths;
  limits.smallest = sizes[0];
  limits.largest = sizes[1];
  limits.head_size = head_size;
  limits.least_width = min_width;
  return limits;
}

std::string DesignRules::text() const {
  KeyWriter writer;
  visit_choice_keys(*this, writer);
  return writer.text() + fmt::format("cost in {}\n", name_of(unit));
}

std::optional<DesignRules> read_design(TomlReader& file) {
  if (!file.has("design")) return std::nullopt;
  TomlReader table = file.table("design");
  DesignRules design;
  read_keys(table, design);
  table.finish();
  read_goals(table, design);
  read_cost(table, design);
  read_limits(table, design);
  return design;
}

}  // namespace fathom::study
