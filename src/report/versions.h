// When and by what a document was written.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace fathom::report {

/// ISO 8601 in UTC, to the second.
std::string now_text();

/// The program and its compiler.
nlohmann::ordered_json program_versions();

}  // namespace fathom::report
