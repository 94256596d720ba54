// A study's runs for other programs: CSV, JSON, TensorBoard.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "study/study_rows.h"

namespace fathom::study {

/// Tokens seen and held-out loss along a run, thinned evenly to at most `limit` points, the last
/// one kept.
std::vector<std::pair<double, double>> read_curve(const std::filesystem::path& run_folder,
                                                  double tokens_per_step, std::size_t limit);

std::string export_csv(const std::vector<RunRow>& rows);
/// {"schema": "fathom.study_runs.v1", "runs": [...]}
std::string export_json(const std::vector<RunRow>& rows);

/// One folder a run under `output` with an event file of all its scalars; the number of runs.
std::size_t export_tensorboard(const std::filesystem::path& directory,
                               const std::vector<RunRow>& rows,
                               const std::filesystem::path& output);

}  // namespace fathom::study
