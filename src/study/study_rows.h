// The runs of a study as one table, from their folders.
#pragma once

#include <string>
#include <vector>

#include "fits/run_point.h"
#include "study/run_state.h"
#include "study/study_folder.h"

namespace fathom::study {

struct RunRow {
  std::string id;
  std::int64_t layers = 0, width = 0, heads = 0;
  double params = 0;        // non-embedding
  double total_params = 0;  // with embeddings
  double tokens = 0;        // trained; of a run that is not done, to train
  std::uint64_t seed = 0;
  double loss = 0;  // held out, nats a token; NaN without
  double bits_per_byte = 0;
  RunStatus status = RunStatus::pending;
  std::string reason;
  double seconds = 0;  // of the last process
  double tokens_per_second = 0;
  double flops = 0;
  bool in_spec = true;  // the study's present spec names it
};

/// A row from a record alone, or from the plan and the state of an unfinished run.
RunRow row_of(const train::RunRecord& record, const RunState& state);
RunRow row_of(const PlannedRun& run, const RunState& state);

/// All runs: those of the spec in its order, then folders of runs/ that it does not name. Works
/// without study.toml or tokens: then every folder counts as part of the study.
std::vector<RunRow> collect_rows(const std::filesystem::path& directory);
std::vector<RunRow> collect_rows(const Study& study);

/// Finished runs of the spec with a loss.
std::vector<fits::RunPoint> points_of(const std::vector<RunRow>& rows);

/// DIR/points.csv: id,layers,width,params,tokens,loss,seed.
void write_points(const std::filesystem::path& directory, const std::vector<RunRow>& rows);

}  // namespace fathom::study
