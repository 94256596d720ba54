#include "study/export.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "core/csv.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "study/tfevents.h"
#include "train/metrics_file.h"

namespace fathom::study {

namespace fs = std::filesystem;

namespace {

double seconds_of(fs::file_time_type time) {
  const auto system = std::chrono::file_clock::to_sys(time);
  return std::chrono::duration<double>(system.time_since_epoch()).count();
}

/// All numbers of a metrics file; the time of a step is not recorded, so events carry the file's
/// modification time.
EventFile events_of(const fs::path& metrics, double wall_time) {
  EventFile events(wall_time);
  train::read_metrics(metrics, [&](const train::MetricsEvent& event) {
    const auto add = [&](const char* tag, double value) {
      if (std::isfinite(value)) events.scalar(tag, event.step, value, wall_time);
    };
    if (event.training) {
      add("train/loss", event.training->loss);
      add("train/gradient_norm", event.training->gradient_norm);
      add("train/learning_rate", event.training->learning_rate);
    }
    if (event.held_out) {
      add("valid/loss", event.held_out->loss);
      add("valid/bits_per_byte", event.held_out->bits_per_byte);
    }
  });
  return events;
}

}  // namespace

std::vector<std::pair<std::int64_t, double>> read_curve(const train::RunFolder& run,
                                                        std::size_t limit) {
  std::vector<std::pair<std::int64_t, double>> all;
  train::read_evaluations(run.metrics(), [&](std::int64_t step, const train::Evaluation& at) {
    if (std::isfinite(at.loss)) all.emplace_back(step, at.loss);
  });
  if (all.size() <= limit) return all;
  std::vector<std::pair<std::int64_t, double>> thinned;
  for (std::size_t i = 1; i <= limit; ++i) thinned.push_back(all[i * all.size() / limit - 1]);
  return thinned;
}

std::string export_csv(const std::vector<RunRow>& rows) {
  std::string text = csv_line(column_names());
  for (const RunRow& row : rows) text += csv_line(row_texts(row));
  return text;
}

nlohmann::ordered_json export_json(const std::vector<RunRow>& rows) {
  nlohmann::ordered_json document{{"schema", "fathom.study_runs.v1"},
                                  {"fathom", FATHOM_VERSION},
                                  {"runs", nlohmann::ordered_json::array()}};
  for (const RunRow& row : rows) document["runs"].push_back(row_json(row));
  return document;
}

std::size_t export_tensorboard(const StudyFolder& folder, const std::vector<RunRow>& rows,
                               const fs::path& output) {
  std::size_t written = 0;
  for (const RunRow& row : rows) {
    const fs::path metrics = folder.run(row.id).metrics();
    if (row.id.empty() || !fs::exists(metrics)) continue;
    const fs::path target =
        output / fmt::format("{}x{}-seed{}-{}", row.layers, row.width, row.seed, row.id);
    std::error_code error;
    fs::create_directories(target, error);
    if (error) throw DataError(fmt::format("{}: {}", target.string(), error.message()));
    const double wall_time = seconds_of(fs::last_write_time(metrics));
    write_file_atomically(target / fmt::format("events.out.tfevents.{:.0f}.fathom", wall_time),
                          events_of(metrics, wall_time).bytes());
    ++written;
  }
  return written;
}

}  // namespace fathom::study
