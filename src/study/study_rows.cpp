#include "study/study_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "core/error.h"
#include "core/files.h"

namespace fathom::study {

namespace fs = std::filesystem;

RunRow row_of(const train::RunRecord& record, const RunState& state) {
  RunRow row;
  row.id = record.id;
  row.layers = record.layers;
  row.width = record.width;
  row.heads = record.heads;
  row.params = static_cast<double>(record.non_embedding);
  row.total_params = static_cast<double>(record.parameters);
  row.tokens = static_cast<double>(record.tokens);
  row.seed = record.seed;
  row.loss = record.final_loss;
  row.bits_per_byte = record.final_bits_per_byte;
  row.status = state.status;
  row.reason = state.reason;
  row.seconds = record.seconds;
  if (record.seconds > 0 && record.steps > 0) {
    row.tokens_per_second = static_cast<double>(record.tokens) / static_cast<double>(record.steps) *
                            static_cast<double>(record.timed_steps) / record.seconds;
  }
  row.flops = record.flops;
  return row;
}

RunRow row_of(const PlannedRun& run, const RunState& state) {
  if (state.record) return row_of(*state.record, state);
  RunRow row;
  row.id = run.id;
  row.layers = run.spec.model.layers;
  row.width = run.spec.model.width;
  row.heads = run.spec.model.heads;
  row.params = run.parameters;
  row.total_params = run.total_parameters;
  row.tokens = run.tokens;
  row.seed = run.spec.seed;
  row.loss = row.bits_per_byte = NAN;
  row.status = state.status;
  row.reason = state.reason;
  row.flops = run.flops;
  return row;
}

namespace {

/// Folders of runs/ in order of their names.
std::vector<std::string> run_folders(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory / "runs", error)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

void add_folders(const fs::path& directory, const std::unordered_set<std::string>& known,
                 bool in_spec, std::vector<RunRow>& rows) {
  for (const std::string& name : run_folders(directory)) {
    if (known.contains(name)) continue;
    const RunState state = read_run_state(directory / "runs" / name);
    RunRow row;
    if (state.record) {
      row = row_of(*state.record, state);
    } else {
      row.status = state.status;
      row.reason = state.reason;
      row.loss = row.bits_per_byte = NAN;
    }
    row.id = name;
    row.in_spec = in_spec;
    rows.push_back(std::move(row));
  }
}

}  // namespace

std::vector<RunRow> collect_rows(const Study& study) {
  std::vector<RunRow> rows;
  std::unordered_set<std::string> known;
  // Without the tokens planned runs have no names; the folders then tell which there are.
  const bool named = study.has_tokens || run_folders(study.directory).empty();
  for (const PlannedRun& run : study.runs) {
    if (!named) break;
    rows.push_back(
        row_of(run, run.id.empty() ? RunState{} : read_run_state(study.run_folder(run.id))));
    if (!run.id.empty()) known.insert(run.id);
  }
  add_folders(study.directory, known, !study.has_tokens, rows);
  return rows;
}

std::vector<RunRow> collect_rows(const fs::path& directory) {
  if (fs::exists(directory / "study.toml")) return collect_rows(open_study(directory));
  if (!fs::is_directory(directory / "runs")) {
    throw DataError(
        fmt::format("{}: no study here (neither study.toml nor runs/)", directory.string()));
  }
  std::vector<RunRow> rows;
  add_folders(directory, {}, true, rows);
  return rows;
}

std::vector<fits::RunPoint> points_of(const std::vector<RunRow>& rows) {
  std::vector<fits::RunPoint> points;
  for (const RunRow& row : rows) {
    const bool counts = row.status == RunStatus::finished || row.status == RunStatus::early_stopped;
    if (!row.in_spec || !counts || !std::isfinite(row.loss)) continue;
    points.push_back({row.id, row.layers, row.width, row.params, row.tokens, row.loss, row.seed});
  }
  return points;
}

void write_points(const fs::path& directory, const std::vector<RunRow>& rows) {
  std::string text = "id,layers,width,params,tokens,loss,seed\n";
  for (const fits::RunPoint& p : points_of(rows)) {
    text += fmt::format("{},{},{},{:.0f},{:.0f},{},{}\n", p.id, p.layers, p.width, p.params,
                        p.tokens, p.loss, p.seed);
  }
  write_file_atomically(directory / "points.csv", text);
}

}  // namespace fathom::study
