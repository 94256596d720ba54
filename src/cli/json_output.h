// The one way commands print JSON: ordered keys, two-space indent, a versioned schema name first.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/command_line.h"

namespace fathom {

using Json = nlohmann::ordered_json;

/// {"schema": "fathom.NAME.v1", "fathom": "0.1.0"} to be filled.
Json json_document(const std::string& name);
void print_json(Session& session, const Json& document);

/// JSON has no infinity: absent and non-finite numbers become null.
Json number_or_null(std::optional<double> value);
/// A count as a JSON integer when a double can hold it exactly.
Json whole_number(double value);

}  // namespace fathom
