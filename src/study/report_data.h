// Everything a report of a study needs, as one JSON document (schema "fathom.report/1").
#pragma once

#include <filesystem>
#include <string>

namespace fathom::study {

/// `fit_json`: the object `study fit --json` prints, or "" when nothing was fitted. The answer is
/// three sentences: the verdict, what the transitions say, and how that stands to the published
/// law. DataError when `directory` holds no study.
std::string report_data(const std::filesystem::path& directory, const std::string& fit_json);

}  // namespace fathom::study
