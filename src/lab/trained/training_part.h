// A training run as a part of an experiment: the run is trained until its folder has a record, and
// what the record and the metrics say is the part's result.
//
// Runs live under FOLDER/runs/ID like those of a study, so a stopped experiment resumes from their
// checkpoints and finished ones are not repeated. Text is the default corpus in bytes, prepared
// once into FOLDER/tokens.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lab/frame/experiment.h"
#include "train/run_spec.h"

namespace fathom::lab {

/// The spec of a run from its TOML text, for the set-up's device: bf16 on a GPU, f32 on the
/// processor. Tokens, where it names any, are those of the default corpus.
train::RunSpec lab_run_spec(const Setup& setup, const std::string& toml);

/// The key of a run's part.
std::string training_key(const train::RunSpec& spec);

/// Adds what a run's folder says to its result; `name` is part of the key.
struct RunReader {
  std::string name;
  std::function<void(const Setup&, const std::filesystem::path& run, Json& result)> read;
};

/// One part for each spec. ConfigError when all of them would take longer than the set-up allows.
std::vector<Part> training_parts(const Setup& setup, const std::vector<train::RunSpec>& specs,
                                 const RunReader& reader = {});

/// The result of a part, read back.
struct TrainedRun {
  train::RunSpec spec;
  Json result;

  std::int64_t layers() const { return spec.model.layers; }
  bool diverged() const { return result.at("status") == "diverged"; }
  double number(const char* key) const;  // NaN for null
  double loss() const { return number("loss"); }
  /// Share of wrong targets in a group of a task's examples; NaN when there is none.
  double group_error(std::int64_t value) const;
  struct CurvePoint {
    double step = 0, loss = 0;
  };
  std::vector<CurvePoint> curve() const;  // held-out losses
};

/// Specs and results in the order of the parts.
std::vector<TrainedRun> trained_runs(const std::vector<train::RunSpec>& specs,
                                     const std::vector<Json>& results);

/// A share in percent with one decimal.
std::string percent(double share);

/// What every page says about how the numbers were obtained.
std::string training_note(const Setup& setup, const std::vector<TrainedRun>& runs);

}  // namespace fathom::lab
