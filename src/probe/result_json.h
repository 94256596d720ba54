// A probe's result as JSON, every number of it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "probe/result.h"

namespace fathom::probe {

/// Adds the result's fields to a document.
void write_result(const ProbeResult& result, nlohmann::ordered_json& document);

}  // namespace fathom::probe
