// What is known about a run, and its file record.json.
//
// visit_columns lists every column once: record.json, the index (study.db), CSV and JSON exports,
// `study list` and the report all visit that list.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "core/enum_names.h"
#include "data/tasks/task_scores.h"

namespace fathom::train {

enum class RunStatus : std::uint8_t {
  pending,        // nothing has been done yet
  running,        // a process is training it
  interrupted,    // it was started and can be resumed
  finished,       // all steps were done
  early_stopped,  // patience ran out
  diverged,       // a result too, with its reason
  failed          // its last process ended with an error
};
constexpr auto enum_names(RunStatus) {
  return std::array{"pending",       "running",  "interrupted", "finished",
                    "early_stopped", "diverged", "failed"};
}
/// It has a record and is not run again.
bool is_done(RunStatus status);
/// Done, with a loss that may be compared.
bool has_result(RunStatus status);

/// What a column's numbers mean and how they are shown.
enum class Quantity : std::uint8_t { plain, count, loss, seconds, bytes };

struct Column {
  const char* name;   // in tables: the index, exports, the report
  const char* field;  // in record.json
  Quantity quantity;

  constexpr Column(const char* both, Quantity meant = Quantity::plain)
      : name(both), field(both), quantity(meant) {}
  constexpr Column(const char* in_tables, const char* in_record, Quantity meant = Quantity::plain)
      : name(in_tables), field(in_record), quantity(meant) {}
};

/// For a run that has not ended: what it was asked to do. What only training can determine starts
/// as NaN, which tables show as empty and JSON as null.
struct RunRecord {
  std::string id;
  std::int64_t layers = 0, width = 0, heads = 0;
  std::int64_t non_embedding = 0;  // parameters without token table, positions and an untied head
  std::int64_t parameters = 0;
  std::int64_t tokens = 0;
  std::uint64_t seed = 0;
  double final_loss = NAN, final_bits_per_byte = NAN;  // held out; the loss in nats per token
  RunStatus status = RunStatus::pending;
  std::string reason;  // of a divergence or a failure
  double seconds = 0;  // of the last process, which did timed_steps of the steps
  double flops = 0;    // of the training steps, masked scores not counted
  std::int64_t steps = 0;
  std::int64_t timed_steps = 0;
  double best_loss = NAN;  // least of all evaluations
  std::int64_t memory_bytes = 0;
  std::uint64_t metrics_bytes = 0;  // of metrics.jsonl at the end; 0 in older records. No column
  std::optional<data::TaskScores> scores = {};  // of a run on a task, at its end. No column

  double tokens_per_second() const;

  /// Calls visit(Column, value), or visit.derived(Column, value) for what record.json does not hold
  /// because it follows from the rest.
  template <class Self, class Visitor>
  static void visit_columns(Self& record, Visitor& visit) {
    visit(Column("id"), record.id);
    visit(Column("layers"), record.layers);
    visit(Column("width"), record.width);
    visit(Column("heads"), record.heads);
    visit(Column("params", "non_embedding_parameters", Quantity::count), record.non_embedding);
    visit(Column("total_params", "parameters", Quantity::count), record.parameters);
    visit(Column("tokens", Quantity::count), record.tokens);
    visit(Column("seed"), record.seed);
    visit(Column("loss", "final_loss", Quantity::loss), record.final_loss);
    visit(Column("bits_per_byte", "final_bits_per_byte", Quantity::loss),
          record.final_bits_per_byte);
    visit(Column("status", "outcome"), record.status);
    visit(Column("reason"), record.reason);
    visit(Column("seconds", Quantity::seconds), record.seconds);
    visit.derived(Column("tokens_per_second", Quantity::count), record.tokens_per_second());
    visit(Column("flops", Quantity::count), record.flops);
    visit(Column("steps", Quantity::count), record.steps);
    visit(Column("timed_steps", Quantity::count), record.timed_steps);
    visit(Column("best_loss", Quantity::loss), record.best_loss);
    visit(Column("memory_bytes", Quantity::bytes), record.memory_bytes);
  }
};

/// The document of record.json.
nlohmann::ordered_json to_json(const RunRecord& record);
void write_run_record(const RunRecord& record, const std::filesystem::path& path);
/// DataError when the file is damaged or not a record of an ended run. Fields that an older version
/// did not write keep their defaults.
RunRecord read_run_record(const std::filesystem::path& path);

}  // namespace fathom::train
