#include "train/run_record.h"

#include <fmt/format.h>

#include "core/counts.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json_file.h"
#include "core/json_text.h"

namespace fathom::train {
namespace {

constexpr const char* kSchema = "fathom.record.v1";
constexpr const char* kMetricsBytes = "metrics_file_bytes";

struct FieldWriter {
  nlohmann::ordered_json& json;

  template <class T>
  void operator()(const Column& column, const T& value) {
    json[column.field] = json_value(value);
  }
  void derived(const Column&, double) {}
};

struct FieldReader {
  const nlohmann::json& json;

  template <class T>
  void operator()(const Column& column, T& value) {
    if (const auto found = json.find(column.field); found != json.end()) {
      read_json_value(*found, value);
    }
  }
  void derived(const Column&, double) {}
};

}  // namespace

bool is_done(RunStatus status) {
  return has_result(status) || status == RunStatus::diverged;
}

bool has_result(RunStatus status) {
  return status == RunStatus::finished || status == RunStatus::early_stopped;
}

double RunRecord::tokens_per_second() const {
  if (!(seconds > 0) || steps == 0) return 0;
  const double tokens_per_step = as_double(tokens) / as_double(steps);
  return tokens_per_step * as_double(timed_steps) / seconds;
}

nlohmann::ordered_json to_json(const RunRecord& record) {
  nlohmann::ordered_json json{{"schema", kSchema}};
  FieldWriter writer{json};
  RunRecord::visit_columns(record, writer);
  json[kMetricsBytes] = record.metrics_bytes;
  return json;
}

void write_run_record(const RunRecord& record, const std::filesystem::path& path) {
  write_file_atomically(path, json_file_text(to_json(record)));
}

RunRecord read_run_record(const std::filesystem::path& path) {
  const nlohmann::json json = read_json_file(path);
  const auto refuse = [&] {
    throw DataError(fmt::format("{}: is not a record of a run", path.string()));
  };
  for (const char* needed : {"id", "outcome", "steps", "tokens", "final_loss"}) {
    if (!json.is_object() || !json.contains(needed)) refuse();
  }
  RunRecord record;
  try {
    FieldReader reader{json};
    RunRecord::visit_columns(record, reader);
    record.metrics_bytes = json.value(kMetricsBytes, std::uint64_t{0});
  } catch (const std::exception&) {
    refuse();
  }
  if (!is_done(record.status)) refuse();
  if (!json.contains("timed_steps")) record.timed_steps = record.steps;
  return record;
}

}  // namespace fathom::train
