// A chart of an experiment as a drawing of its own, for pages that are text.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace fathom::report {

/// An SVG of a chart as lab/frame/result_json.h writes it: lines with dots, bars for intervals, a
/// legend.
std::string chart_svg(const nlohmann::ordered_json& chart);

}  // namespace fathom::report
