#include "train/run_record.h"

#include <fmt/format.h>

#include "core/counts.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json_file.h"
#include "core/json_reader.h"
#include "core/json_text.h"

namespace fathom::train {
namespace {

constexpr const char* kSchema = "fathom.record.v1";
constexpr const char* kMetricsBytes = "metrics_file_bytes";
constexpr const char* kTask = "task";

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
      if constexpr (std::integral<T> && !std::same_as<T, bool>) {
        value = json_whole<T>(*found);
      } else {
        read_json_value(*found, value);
      }
    }
  }
  void derived(const Column&, double) {}
};

nlohmann::ordered_json to_json(const data::TaskScores& scores) {
  nlohmann::ordered_json json{{"accuracy", number_or_null(scores.accuracy)},
                              {"sequence_accuracy", number_or_null(scores.sequence_accuracy)},
                              {"majority", number_or_null(scores.majority)},
                              {"first_token", number_or_null(scores.first_token)},
                              {"group", scores.group_name},
                              {"groups", nlohmann::ordered_json::array()},
                              {"by_position", nlohmann::ordered_json::array()}};
  for (const data::TaskScores::Group& group : scores.groups) {
    json["groups"].push_back({{"value", group.value},
                              {"targets", group.targets},
                              {"accuracy", number_or_null(group.accuracy)},
                              {"sequence_accuracy", number_or_null(group.sequence_accuracy)},
                              {"loss", number_or_null(group.loss)}});
  }
  for (const double accuracy : scores.by_position) {
    json["by_position"].push_back(number_or_null(accuracy));
  }
  return json;
}

data::TaskScores read_scores(const nlohmann::json& json) {
  data::TaskScores scores;
  read_json_value(json.at("accuracy"), scores.accuracy);
  read_json_value(json.at("sequence_accuracy"), scores.sequence_accuracy);
  read_json_value(json.at("majority"), scores.majority);
  read_json_value(json.at("first_token"), scores.first_token);
  scores.group_name = json.at("group");
  for (const auto& each : json.at("groups")) {
    data::TaskScores::Group& group = scores.groups.emplace_back();
    group.value = json_whole<decltype(group.value)>(each.at("value"));
    group.targets = json_whole<decltype(group.targets)>(each.at("targets"));
    read_json_value(each.at("accuracy"), group.accuracy);
    read_json_value(each.at("sequence_accuracy"), group.sequence_accuracy);
    read_json_value(each.at("loss"), group.loss);
  }
  for (const auto& each : json.at("by_position")) {
    read_json_value(each, scores.by_position.emplace_back());
  }
  return scores;
}

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
  if (record.scores) json[kTask] = to_json(*record.scores);
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
    if (json.contains(kTask)) record.scores = read_scores(json.at(kTask));
  } catch (const std::exception&) {
    refuse();
  }
  if (!is_done(record.status)) refuse();
  if (!json.contains("timed_steps")) record.timed_steps = record.steps;
  return record;
}

}  // namespace fathom::train
