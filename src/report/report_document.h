// Everything a report shows, as one JSON document. web/schema/report.schema.json describes it; the
// page's types are made from that file, and a test checks what is written here against it.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fits/study_fit.h"
#include "study/study_rows.h"
#include "train/run_curve.h"

namespace fathom::report {

inline constexpr std::string_view kReportSchema = "fathom.report.v1";

/// The answer is the fit's; without a fit it says how far the runs have got.
nlohmann::ordered_json report_document(const study::Study& study,
                                       const std::vector<study::RunRow>& rows,
                                       const std::optional<fits::StudyFit>& fit);

/// From a study's folder: reads and fits its runs, and keeps the study's law up to date with them.
/// DataError when there is no study.
nlohmann::ordered_json make_report_document(const std::filesystem::path& directory);

/// From a table of runs that were trained elsewhere (fits/run_points_csv.h); nothing is kept.
nlohmann::ordered_json make_table_document(const std::filesystem::path& table,
                                           const fits::PointSelection& selection);

/// What the finished runs of a study say: {"answer", "advice", "fit", "decided"}, the last what an
/// overview shows. Nothing is written.
nlohmann::ordered_json make_findings(const std::filesystem::path& directory);

/// A document from its parts. `findings`: of make_findings, null before there are any; `curves`: a
/// list of curve_json.
nlohmann::ordered_json assemble_report(const study::Study& study,
                                       const std::vector<study::RunRow>& rows,
                                       const nlohmann::ordered_json& findings,
                                       nlohmann::ordered_json curves);
/// The same for a folder whose spec was lost.
nlohmann::ordered_json assemble_report(const std::string& title,
                                       const std::vector<study::RunRow>& rows,
                                       const nlohmann::ordered_json& findings,
                                       nlohmann::ordered_json curves);

/// A curve of the document, thinned; null while there is no loss.
nlohmann::ordered_json curve_json(const std::string& id, const train::RunCurve& curve,
                                  double tokens_per_step);

/// A document from a file. DataError when it is not a JSON object of this schema.
nlohmann::ordered_json read_report_document(const std::filesystem::path& path);

}  // namespace fathom::report
