// A study's runs for other programs: CSV, JSON, TensorBoard; and the loss along a run.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "study/run_row.h"
#include "study/study_folder.h"

namespace fathom::study {

/// Steps and held-out losses along a run, thinned evenly to at most `limit` points, the last one
/// kept.
std::vector<std::pair<std::int64_t, double>> read_curve(const train::RunFolder& run,
                                                        std::size_t limit);

std::string export_csv(const std::vector<RunRow>& rows);
/// {"schema": "fathom.study_runs.v1", "fathom": version, "runs": [...]}
nlohmann::ordered_json export_json(const std::vector<RunRow>& rows);

/// One folder per run under `output` with an event file of all its scalars; the number of runs.
std::size_t export_tensorboard(const StudyFolder& folder, const std::vector<RunRow>& rows,
                               const std::filesystem::path& output);

}  // namespace fathom::study
