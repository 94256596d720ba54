#include "study/study_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "core/counts.h"
#include "core/error.h"
#include "train/metrics_file.h"

namespace fathom::study {

namespace fs = std::filesystem;

namespace {

/// Folders of runs/ in order of name.
std::vector<std::string> run_folders(const StudyFolder& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder.runs(), error)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

void add_folders(const StudyFolder& folder, const std::unordered_set<std::string>& known,
                 bool in_spec, std::vector<RunRow>& rows) {
  for (const std::string& name : run_folders(folder)) {
    if (known.contains(name)) continue;
    RunRow row = row_of(PlannedRun{}, read_run_state(folder.run(name)));
    row.id = name;
    row.in_spec = in_spec;
    rows.push_back(std::move(row));
  }
}

bool only_points_are_left(const StudyFolder& folder) {
  std::error_code error;
  return !fs::exists(folder.runs(), error) && fs::exists(folder.points(), error);
}

bool is_wanted(const RunRow& row, const fits::PointSelection& selection) {
  return std::all_of(selection.where.begin(), selection.where.end(), [&](const auto& condition) {
    return (column_text(row, condition.column) == condition.value) == condition.equal;
  });
}

}  // namespace

std::vector<RunRow> rows_of_points(const std::vector<fits::RunPoint>& points) {
  std::vector<RunRow> rows;
  for (const fits::RunPoint& point : points) {
    RunRow row;
    row.id = point.id;
    row.layers = point.layers;
    row.width = point.width;
    row.non_embedding = std::llround(point.params);
    row.tokens = std::llround(point.tokens);
    row.seed = point.seed;
    row.final_loss = point.loss;
    row.status = RunStatus::finished;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<RunRow> collect_rows(const Study& study) {
  if (only_points_are_left(study.folder))
    return rows_of_points(fits::read_run_points(study.folder.points()));
  std::vector<RunRow> rows;
  std::unordered_set<std::string> known;
  // Without the tokens planned runs have no names; the folders then show which there are.
  const bool named = study.has_tokens || run_folders(study.folder).empty();
  for (const PlannedRun& run : study.runs) {
    if (!named) break;
    rows.push_back(
        row_of(run, run.id.empty() ? RunState{} : read_run_state(study.folder.run(run.id))));
    if (!run.id.empty()) known.insert(run.id);
  }
  add_folders(study.folder, known, !study.has_tokens, rows);
  return rows;
}

std::vector<RunRow> collect_rows(const fs::path& directory) {
  const StudyFolder folder(directory);
  if (only_points_are_left(folder)) return rows_of_points(fits::read_run_points(folder.points()));
  if (fs::exists(folder.spec())) return collect_rows(open_study(directory));
  if (!fs::is_directory(folder.runs())) {
    throw DataError(fmt::format("{}: no study here (neither {} nor {}/)", folder.name(),
                                StudyFolder::kSpec, folder.runs().filename().string()));
  }
  std::vector<RunRow> rows;
  add_folders(folder, {}, true, rows);
  return rows;
}

std::vector<std::string> damaged_records(const std::vector<RunRow>& rows) {
  std::vector<std::string> damage;
  for (const RunRow& row : rows) {
    if (!row.damage.empty()) damage.push_back(row.damage);
  }
  return damage;
}

std::vector<std::string> damage_of(const StudyFolder& folder, const std::vector<RunRow>& rows) {
  std::vector<std::string> damage = damaged_records(rows);
  for (const RunRow& row : rows) {
    if (row.id.empty()) continue;
    for (std::string& line :
         train::damaged_metrics(folder.run(row.id).metrics(), row.metrics_bytes)) {
      damage.push_back(std::move(line));
    }
  }
  return damage;
}

RunRow find_row(const fs::path& directory, const std::string& id_begin) {
  std::vector<RunRow> found;
  for (const RunRow& row : collect_rows(directory)) {
    if (row.id.starts_with(id_begin)) found.push_back(row);
  }
  if (found.size() == 1) return found.front();
  throw ConfigError(fmt::format("{} runs of {} begin with '{}'; see 'fathom study list {}'",
                                found.size(), directory.string(), id_begin, directory.string()));
}

std::vector<fits::RunPoint> points_of(const std::vector<RunRow>& rows,
                                      const fits::PointSelection& selection) {
  std::vector<fits::RunPoint> points;
  for (const RunRow& row : rows) {
    if (!row.in_spec || !has_result(row.status) || !std::isfinite(row.final_loss)) continue;
    if (!is_wanted(row, selection)) continue;
    const double params = selection.params_column.empty()
                              ? as_double(row.non_embedding)
                              : column_number(row, selection.params_column);
    points.push_back(
        {row.id, row.layers, row.width, params, as_double(row.tokens), row.final_loss, row.seed});
  }
  return points;
}

}  // namespace fathom::study
