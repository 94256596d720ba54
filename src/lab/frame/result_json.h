// A verdict and its claim as JSON: the one form for output, records and the page. Include only in
// .cpp files.
#pragma once

#include <string>

#include "lab/frame/runner.h"

namespace fathom::lab {

inline constexpr const char* kResultSchema = "fathom.lab_result.v1";

/// The claim's own facts: id, source, statement, criteria, finding.
Json claim_json(const Claim& claim);

/// schema, id, verdict, by, boundary, criteria, the experiment's own fields at top level, exhibits.
Json result_json(const LabResult& result);

/// DataError, naming `origin`, unless the document is one that result_json made.
void check_result(const Json& document, const std::string& origin);

/// The number, or null where it is not finite.
Json finite_or_null(double value);

}  // namespace fathom::lab
