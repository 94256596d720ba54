// The runs of a study as one table, from their folders.
#pragma once

#include <filesystem>
#include <vector>

#include "fits/run_points_csv.h"
#include "study/run_row.h"
#include "study/study.h"

namespace fathom::study {

/// All runs: those of the spec in its order, then folders of runs that it does not name. Works
/// without a spec or tokens: then every folder counts as part of the study. Where the folders of an
/// old study were not kept at all, its table of points is what is left.
std::vector<RunRow> collect_rows(const Study& study);
/// DataError when there is no study.
std::vector<RunRow> collect_rows(const std::filesystem::path& directory);

/// A table of runs that were trained elsewhere, each finished.
std::vector<RunRow> rows_of_points(const std::vector<fits::RunPoint>& points);
/// Why records of these runs were left out, a line for each.
std::vector<std::string> damaged_records(const std::vector<RunRow>& rows);
/// Those, and the damaged lines of their metrics, which are all read for this.
std::vector<std::string> damage_of(const StudyFolder& folder, const std::vector<RunRow>& rows);

/// The run whose id begins with this text; ConfigError when none or several do.
RunRow find_row(const std::filesystem::path& directory, const std::string& id_begin);

/// Runs of the spec with a loss to compare, and of these the ones that `selection` takes.
std::vector<fits::RunPoint> points_of(const std::vector<RunRow>& rows,
                                      const fits::PointSelection& selection = {});

}  // namespace fathom::study
