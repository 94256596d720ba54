// The law of a study: fitted to its run folders, and kept in the study's law file.
//
// There is one way from runs to a law. `study fit` and `study report` both take it; neither reads
// the table of points or an earlier law, so they cannot disagree.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "fits/study_fit.h"
#include "study/study_rows.h"

namespace fathom::study {

/// What the runs with a result say; nothing when there is none. DataError when there is no study.
std::optional<fits::StudyFit> fit_runs(const std::vector<RunRow>& rows,
                                       const fits::PointSelection& selection = {},
                                       const fits::FitOptions& options = {});

/// Puts the law next to the runs, where `plan --law study:DIR` finds it. A fit without a law, or no
/// fit, removes an earlier one: it no longer follows from the runs. Whether there is one now.
bool save_law(const StudyFolder& folder, const std::optional<fits::StudyFit>& fit);

}  // namespace fathom::study
