#include <fmt/format.h>

#include "core/units.h"
#include "lab/frame/options.h"
#include "lab/ranks/defect_check.h"
#include "lab/ranks/rank_experiments.h"
#include "theory/three_layer_defect.h"

namespace fathom::lab {
namespace {

constexpr int kDefectVersion = 1;

/// Widths whose degree-7 block is also computed by elimination, with one B position.
std::vector<std::size_t> ranked_widths(const Setup& setup) {
  return setup.quick ? std::vector<std::size_t>{4} : std::vector<std::size_t>{4, 5};
}

std::vector<Part> plan_defect(const Setup& setup) {
  std::vector<Part> parts;
  for (std::size_t width = 4; width <= 6; ++width) {
    parts.push_back({fmt::format("defect v{} d={}", kDefectVersion, width), width == 6 ? 8.0 : 1.0,
                     [width](const Ticker& tick) {
                       const DefectCheck check = check_defect(width, 1, tick);
                       return Json{{"width", check.width},
                                   {"forms", check.forms},
                                   {"missing", check.missing},
                                   {"zeros", check.zeros},
                                   {"conditions", check.conditions},
                                   {"evaluations", check.evaluations},
                                   {"not_vanishing", check.not_vanishing},
                                   {"control", check.control}};
                     }});
  }
  for (const std::size_t width : ranked_widths(setup)) {
    parts.push_back(
        {fmt::format("defect rank v{} d={}", kDefectVersion, width), width == 5 ? 20.0 : 0.2,
         [width](const Ticker& tick) { return Json(degree_seven_rank(width, 1, tick)); }});
  }
  return parts;
}

Conclusion conclude_defect(const Setup& setup, const std::vector<Json>& results) {
  Conclusion conclusion;
  ExhibitTable table{"Degree 7 in one B vector: forms of degree 14 that three layers cannot reach",
                     {"d", "forms", "proved missing", "outside the ideal",
                      "conditions of its zeros", "zeros", "not 0 there", "missing by elimination"},
                     {}};
  double disagreements = 0;
  double not_vanishing = 0;
  double control = 0;
  double evaluations = 0;
  const std::vector<std::size_t> ranked = ranked_widths(setup);
  conclusion.data["widths"] = Json::array();
  for (std::size_t i = 0; i < 3; ++i) {
    const Json& found = results[i];
    const std::size_t width = 4 + i;
    const std::size_t proved =
        theory::three_layer_defect(static_cast<std::int64_t>(width)).get_ui();
    std::string eliminated = "-";
    disagreements += found.at("missing") != proved ? 1 : 0;
    disagreements += found.at("conditions") != proved ? 1 : 0;
    not_vanishing += found.at("not_vanishing").get<double>();
    control += found.at("control").get<double>();
    evaluations += found.at("evaluations").get<double>();
    Json entry = found;
    if (i < ranked.size()) {
      const std::size_t absent =
          found.at("forms").get<std::size_t>() - results[3 + i].get<std::size_t>();
      disagreements += absent != proved ? 1 : 0;
      eliminated = std::to_string(absent);
      entry["missing_by_elimination"] = absent;
    }
    conclusion.data["widths"].push_back(std::move(entry));
    table.rows.push_back(
        {std::to_string(width), format_whole(found["forms"].get<std::int64_t>()),
         std::to_string(proved), found["missing"].dump(), found["conditions"].dump(),
         found["zeros"].dump(),
         fmt::format("{} of {}", found["not_vanishing"].dump(), found["evaluations"].dump()),
         eliminated});
  }
  conclusion.measures = {{"dimension", disagreements},
                         {"vanishing", not_vanishing},
                         {"control", control / evaluations}};
  conclusion.tables.push_back(std::move(table));
  conclusion.notes.push_back(
      "outside the ideal: Macaulay's matrix over a prime field; conditions: rank of all forms of "
      "degree 14 at the common zeros of the ideal; not 0 there: the network, evaluated from its "
      "definition at those zeros; by elimination: the rank tables' own way");
  return conclusion;
}

}  // namespace

Experiment defect_experiment() {
  return {"three-layer-defect", {}, plan_defect, conclude_defect};
}

}  // namespace fathom::lab
