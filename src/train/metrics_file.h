// metrics.jsonl, the story of a run: one JSON object per line, a line for every step and for every
// evaluation. Written by one process at a time, flushed line by line, never rewritten but for what
// a resume cuts off; read while it grows, so the last line may be cut short.
//
//   {"step":7,"loss":4.1,"gradient_norm":0.8,"learning_rate":0.001}
//   {"step":8,"eval_loss":4.0,"bits_per_byte":2.1}
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>

#include "train/trainer.h"

namespace fathom::train {

class MetricsWriter {
 public:
  explicit MetricsWriter(std::filesystem::path path) : path_(std::move(path)) {}

  /// Cuts the file to the bytes that belong to the checkpoint and appends from there.
  void open(std::uint64_t kept_bytes);
  void add(std::int64_t step, const StepResult& result);
  void add(std::int64_t step, const Evaluation& evaluation);
  std::uint64_t bytes() const { return bytes_; }

 private:
  void write(const std::string& line);

  std::filesystem::path path_;
  std::ofstream stream_;
  std::uint64_t bytes_ = 0;
};

/// One line: a step or an evaluation. Numbers that were not finite are NaN.
struct MetricsEvent {
  std::int64_t step = 0;
  std::optional<StepResult> training;
  std::optional<Evaluation> held_out;
};

/// Every whole line in order; nothing when there is no file.
void read_metrics(const std::filesystem::path& path,
                  const std::function<void(const MetricsEvent&)>& visit);
/// The evaluations alone; steps are passed over without being parsed.
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
