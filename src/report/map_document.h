// Everything the map of shapes shows, as one JSON document: what the planner says at every stop of
// the page's sliders, every published dense model with its exact counts and its place among the
// laws, and modelled times over the plane of depth and width. web/schema/map.schema.json describes
// it; the page's types are made from that file, and a test checks what is written here against it.
//
// The page's sliders stop only where a table has an entry, so nothing that it states is
// interpolated: each entry is the planner's own answer, rounded to kMapDigits significant digits.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "planner/planner.h"

namespace fathom::report {

inline constexpr std::string_view kMapSchema = "fathom.map.v1";
inline constexpr int kMapDigits = 6;

struct MapRequest {
  planner::PlanRequest plan;
  /// To overlay on the map: folders of 'fathom study' or their law files, and points from anywhere
  /// (CSV with columns layers and width; a column name, and others for a point's card).
  std::vector<std::filesystem::path> overlays = {};
  /// Options besides size, tokens and hardware, as typed; the page shows its command with them.
  std::string options = {};
  /// Plans at the request's own tokens alone; other rows are null (make_map_row).
  bool first_row_only = false;
};

/// ConfigError when the request itself has no plan; stops of the sliders without one stay empty.
nlohmann::ordered_json make_map_document(const MapRequest& request);

/// One row of by_parameters or by_flops: the plans at `tokens_per_parameter` for every budget.
nlohmann::ordered_json make_map_row(const MapRequest& request, bool by_flops,
                                    double tokens_per_parameter);

}  // namespace fathom::report
