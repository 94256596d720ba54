// An adaptive study: train a round, fit, choose the next one (fits/run_design.h), until the goals
// are decided, the allowed cost is spent, or what is missing cannot be reached.
//
// The loop sits above the executors: a round is a list of runs like any other. The next round is a
// function of the spec, the records of the complete rounds and the design file, whoever trained
// them and however often they were stopped.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "fits/run_design.h"
#include "study/design_log.h"
#include "study/executor.h"
#include "study/run_row.h"

namespace fathom::study {

/// Where an adaptive study stands.
struct DesignProgress {
  fits::DesignStep step;      // from the complete rounds; its batch is the next round
  std::size_t rounds = 0;     // begun
  std::size_t complete = 0;   // of these
  std::size_t open_runs = 0;  // of a round that is not complete
  double next_cost = 0;       // of what is left of that round, or else of the next one
  double next_seconds = 0;    // the same in time on this machine; NaN: not known
};

/// What the choice of runs is based on. `log` gives the timed steps where costs are in seconds;
/// without one such a cost is counted in FLOPs, which is enough to check the rest.
fits::DesignSpec design_spec(const StudySpec& spec, const std::optional<TokenFacts>& tokens,
                             const DesignLog* log);

/// The step's batch as a round.
DesignRound round_of(const StudySpec& spec, const fits::DesignStep& step);

/// The runs of the first round: the grid's, or those of an automatic start. ConfigError when the
/// allowed cost does not cover them.
DesignRound first_round(const StudySpec& spec, const fits::DesignSpec& design);

/// ConfigError when goals, limits and cost contradict each other.
void check_design(const StudySpec& spec);

/// Times steps of the shapes that the design may ask for, `jobs` models at once; none where the
/// device is not here.
void time_design(const StudySpec& spec, const std::optional<TokenFacts>& tokens, int jobs,
                 DesignLog& log);

/// From the folders. `timed`: a log with steps timed just now; without one the time of the next
/// round follows from the steps timed when the study began, or from the records.
DesignProgress look_at_design(const Study& study, const std::vector<RunRow>& rows,
                              const DesignLog* timed = nullptr);

using ExecuteRuns = std::function<ExecutorResult(const Study& study)>;

struct RoundsResult {
  ExecutorResult runs;
  std::optional<DesignProgress> end;  // absent when it was stopped or runs failed
};

/// Continues from the state of the folder. `study` is planned again after each choice. `note` gets
/// a line for every round.
RoundsResult run_rounds(Study& study, int jobs, const ExecuteRuns& execute,
                        const std::function<void(const std::string&)>& note);

}  // namespace fathom::study
