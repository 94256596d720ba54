// Everything a report shows, as one JSON document. web/schema/report.schema.json describes it; the
// page's types are made from that file, and a test holds what is written here against it.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "fits/study_fit.h"
#include "study/study_rows.h"

namespace fathom::report {

inline constexpr std::string_view kReportSchema = "fathom.report/1";

/// The answer is the fit's; without one it says how far the runs are.
nlohmann::ordered_json report_document(const study::Study& study,
                                       const std::vector<study::RunRow>& rows,
                                       const std::optional<fits::StudyFit>& fit);

/// Of a study's folder: reads and fits its runs, and keeps the study's law in step with them.
/// DataError when there is no study.
nlohmann::ordered_json make_report_document(const std::filesystem::path& directory);

/// Of a table of runs that were trained elsewhere (fits/run_points_csv.h); nothing is kept.
nlohmann::ordered_json make_table_document(const std::filesystem::path& table,
                                           const fits::PointSelection& selection);

/// A document from a file. DataError when it is no JSON object of this schema.
nlohmann::ordered_json read_report_document(const std::filesystem::path& path);

}  // namespace fathom::report
