#include "study/fit.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/files.h"
#include "fits/study_law.h"

namespace fathom::study {

namespace fs = std::filesystem;

std::optional<fits::StudyFit> fit_runs(const std::vector<RunRow>& rows,
                                       const fits::PointSelection& selection,
                                       const fits::FitOptions& options) {
  const std::vector<fits::RunPoint> points = points_of(rows, selection);
  if (points.empty()) return {};
  return fits::fit_study(points, options);
}

bool save_law(const StudyFolder& folder, const std::optional<fits::StudyFit>& fit) {
  std::error_code error;
  const fs::path path = folder.law();
  if (!fit || !fit->has_law()) {
    fs::remove(path, error);
    if (error) throw DataError(fmt::format("{}: {}", path.string(), error.message()));
    return false;
  }
  const std::string text = fits::study_law_text(fits::study_law_data(*fit));
  const bool same = fs::exists(path, error) && read_text_file(path) == text;
  if (!same) write_file_atomically(path, text);
  return true;
}

}  // namespace fathom::study
