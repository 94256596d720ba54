// metrics.jsonl, the log of a run: one JSON object per line, a line for every step and for every
// evaluation, each with its checksum (core/checksum.h). Written by one process at a time, line by
// line, never rewritten except for what a resume cuts off; read while it grows, so the last line
// may be cut short. A line that does not match its checksum is left out, and damaged_metrics names
// it.
//
//   {"step":7,"loss":4.1,"gradient_norm":0.8,"learning_rate":0.001,"checksum":"xxh3:..."}
//   {"step":8,"eval_loss":4.0,"bits_per_byte":2.1,"checksum":"xxh3:..."}
//
// For a task, accuracies replace bits per byte.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/trainer.h"

namespace fathom::train {

class MetricsWriter {
 public:
  explicit MetricsWriter(std::filesystem::path path) : path_(std::move(path)) {}
  ~MetricsWriter();
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;

  /// Cuts the file to the bytes that belong to the checkpoint and appends from there. True when
  /// they were all there; a file that has lost its end is cut to complete lines and continues from
  /// them.
  bool open(std::uint64_t kept_bytes);
  void add(std::int64_t step, const StepResult& result);
  void add(std::int64_t step, const Evaluation& evaluation);
  std::uint64_t bytes() const { return bytes_; }
  /// Ensures that what was written is on disk, before a checkpoint counts it.
  void sync();

 private:
  [[noreturn]] void fail(const char* doing) const;
  void write(nlohmann::ordered_json line);

  std::filesystem::path path_;
  int file_ = -1;
  std::uint64_t bytes_ = 0;
};

/// One line: a step or an evaluation. Numbers that were not finite are NaN.
struct MetricsEvent {
  std::int64_t step = 0;
  std::optional<StepResult> training;
  std::optional<Evaluation> held_out;
};

/// Whether a line has the bytes that were written: false where its checksum is of another line.
/// Lines of older versions have none and count as intact.
bool metrics_line_is_whole(std::string_view line);

/// The damage in the file, a line for each place: "FILE:LINE: ...". `bytes` is how long the file of
/// an ended run must be, 0 when unknown.
std::vector<std::string> damaged_metrics(const std::filesystem::path& path, std::uint64_t bytes);

/// Every complete line in order; nothing when there is no file.
void read_metrics(const std::filesystem::path& path,
                  const std::function<void(const MetricsEvent&)>& visit);
/// The evaluations alone; steps are skipped without being parsed.
void read_evaluations(const std::filesystem::path& path,
                      const std::function<void(std::int64_t step, const Evaluation&)>& visit);

/// How far a run is, from the end of its file.
struct RunTail {
  std::int64_t step = 0;
  double loss = 0;       // of the last training step
  double eval_loss = 0;  // last held-out loss; 0 when there was none
};
RunTail read_run_tail(const std::filesystem::path& path);

}  // namespace fathom::train
