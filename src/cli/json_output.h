// The one way commands print JSON: ordered keys, two-space indent, a versioned schema name first.
#pragma once

#include <string>

#include "cli/command_line.h"
#include "core/json_text.h"

namespace fathom {

using Json = nlohmann::ordered_json;

/// {"schema": "fathom.NAME.v1", "fathom": "0.1.0"} to be filled.
Json json_document(const std::string& name);
void print_json(Session& session, const Json& document);

}  // namespace fathom
