#include "study/rounds.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "core/counts.h"
#include "core/error.h"
#include "engine/device.h"
#include "study/cost.h"
#include "study/design_text.h"
#include "study/study_rows.h"

namespace fathom::study {
namespace {

constexpr double kTimingSeconds = 5;

GridShape grid_shape(const StudySpec& spec, std::int64_t layers, std::int64_t width) {
  return {layers, width, width / spec.design->head_size};
}

/// What one trajectory costs, in the design's unit.
double cost_of(const StudySpec& spec, const std::vector<PlannedRun>& runs, const DesignLog* log) {
  if (spec.design->unit == CostUnit::runs) return as_double(runs.size());
  double sum = 0;
  for (const PlannedRun& run : runs) {
    const bool timed = spec.design->unit == CostUnit::seconds && log != nullptr;
    sum += timed ? log->speed.seconds(run) / log->jobs : run.flops * run.fresh_share();
  }
  return sum;
}

void require_timing(const DesignLog& log) {
  if (!log.speed.points.empty()) return;
  throw ConfigError(
      "design: a cost in seconds needs steps timed on the device, and none could be timed; give "
      "flops or runs instead");
}

/// Rounds all of whose runs are done.
std::size_t complete_rounds(const DesignLog& log, const std::set<Trajectory>& open) {
  std::size_t complete = 0;
  while (complete < log.rounds.size()) {
    for (const Trajectory& run : log.rounds[complete].runs) {
      if (open.contains(run)) return complete;
    }
    ++complete;
  }
  return complete;
}

Trajectory trajectory_of(const RunRow& row) {
  return {{row.layers, row.width, row.heads}, row.seed};
}

/// Seconds per step by its FLOPs, from the records.
SpeedModel speed_of_records(const std::vector<RunRow>& rows) {
  std::map<double, std::pair<double, double>> by_step;  // FLOPs per step: FLOPs, seconds
  for (const RunRow& row : rows) {
    if (!has_result(row.status) || row.steps < 1 || row.seconds <= 0) continue;
    const double step = row.flops / as_double(row.steps);
    by_step[step].first += step * as_double(row.timed_steps);
    by_step[step].second += row.seconds;
  }
  SpeedModel speed;
  for (const auto& [step, sums] : by_step) {
    if (sums.first > 0) speed.points.push_back({step, sums.first / sums.second});
  }
  return speed;
}

/// The records of `trajectories`, and the cost lost on diverged ones.
std::vector<fits::RunPoint> take_records(const std::vector<RunRow>& rows,
                                         const std::vector<Trajectory>& trajectories,
                                         fits::DesignSpec& design) {
  const std::set<Trajectory> wanted(trajectories.begin(), trajectories.end());
  std::vector<RunRow> taken;
  std::set<Trajectory> diverged;
  for (const RunRow& row : rows) {
    if (!row.in_spec || !wanted.contains(trajectory_of(row))) continue;
    taken.push_back(row);
    if (is_done(row.status) && !has_result(row.status)) diverged.insert(trajectory_of(row));
  }
  std::vector<fits::RunPoint> points = points_of(taken);
  std::set<Trajectory> with_points;
  for (const RunRow& row : taken) {
    if (has_result(row.status)) with_points.insert(trajectory_of(row));
  }
  for (const Trajectory& lost : diverged) {
    design.left_out.insert({lost.shape.layers, lost.shape.width});
    if (with_points.contains(lost)) continue;
    design.lost += design.cost(lost.shape.layers, lost.shape.width, {});
  }
  return points;
}

/// Timed just now, or when the study began, or by its runs.
SpeedModel speed_known(const std::vector<RunRow>& rows, const DesignLog* log,
                       const DesignLog* timed) {
  if (timed && !timed->speed.points.empty()) return timed->speed;
  if (log && !log->speed.points.empty()) return log->speed;
  return speed_of_records(rows);
}

double seconds_of(const std::vector<PlannedRun>& runs, const SpeedModel& speed, int jobs) {
  double sum = 0;
  for (const PlannedRun& run : runs) sum += speed.seconds(run);
  return sum / std::max(1, jobs);
}

}  // namespace

fits::DesignSpec design_spec(const StudySpec& spec, const std::optional<TokenFacts>& tokens,
                             const DesignLog* log) {
  fits::DesignSpec design;
  design.goals = spec.design->goals;
  design.limits = spec.design->limits();
  design.budget = spec.design->budget;
  design.batch_share = spec.design->round_share;
  const auto tokens_per_step =
      as_double(spec.run_spec(spec.first_shape(), 1000, 1).tokens_per_step());
  const Budget budget = spec.budget;
  design.lengths = [budget, tokens_per_step](double params) {
    std::vector<double> lengths = budget.tokens;
    if (lengths.empty()) lengths = {budget.tokens_per_parameter * params};
    for (double& length : lengths) {
      length = tokens_per_step * std::max(1.0, std::ceil(length / tokens_per_step));
    }
    return lengths;
  };
  using Key = std::pair<std::int64_t, std::int64_t>;
  auto known = std::make_shared<std::map<Key, double>>();
  design.cost = [spec, tokens, known, kept = log ? std::optional(*log) : std::nullopt](
                    std::int64_t layers, std::int64_t width, const std::vector<double>&) {
    const auto [place, is_new] = known->try_emplace({layers, width}, 0.0);
    if (is_new) {
      const Trajectory one{grid_shape(spec, layers, width), 1};
      place->second = cost_of(spec, plan_runs(spec, {one}, tokens), kept ? &*kept : nullptr);
    }
    return place->second;
  };
  return design;
}

DesignRound round_of(const StudySpec& spec, const fits::DesignStep& step) {
  DesignRound round;
  round.cost = step.batch_cost;
  for (const fits::DesignRun& run : step.batch) {
    round.runs.push_back({grid_shape(spec, run.layers, run.width), run.seed});
  }
  return round;
}

DesignRound first_round(const StudySpec& spec, const fits::DesignSpec& design) {
  if (spec.grid.shapes.empty()) {
    const fits::DesignStep step = fits::next_batch({}, design);
    if (step.batch.empty()) {
      throw ConfigError(fmt::format(
          "design: half of {} does not cover the first shapes; allow more, or smaller sizes",
          cost_text(spec.design->budget, spec.design->unit)));
    }
    return round_of(spec, step);
  }
  DesignRound round;
  round.runs = grid_trajectories(spec);
  for (const Trajectory& run : round.runs) {
    round.cost += design.cost(run.shape.layers, run.shape.width, {});
  }
  if (round.cost > spec.design->budget) {
    throw ConfigError(
        fmt::format("design: the grid, its first round, costs {}, and {} are allowed; allow more "
                    "or remove shapes",
                    cost_text(round.cost, spec.design->unit),
                    cost_text(spec.design->budget, spec.design->unit)));
  }
  return round;
}

void check_design(const StudySpec& spec) {
  fits::DesignSpec design = design_spec(spec, std::nullopt, nullptr);
  // How far seconds go is only known once steps are timed.
  const bool seconds = spec.design->unit == CostUnit::seconds;
  if (seconds) design.budget = 1e300;
  fits::require_consistent(design);
  if (!seconds) first_round(spec, design);
}

void time_design(const StudySpec& spec, const std::optional<TokenFacts>& tokens, int jobs,
                 DesignLog& log) {
  std::vector<Trajectory> all = grid_trajectories(spec);
  for (const fits::CandidateShape& shape : fits::candidate_shapes(spec.design->limits())) {
    all.push_back({grid_shape(spec, shape.layers, shape.width), 1});
  }
  log.jobs = jobs;
  const bool here = spec.device == engine::DeviceKind::cpu || engine::find_cuda_device();
  if (here) log.speed = measure_speed(plan_runs(spec, all, tokens), jobs, kTimingSeconds);
}

DesignProgress look_at_design(const Study& study, const std::vector<RunRow>& rows,
                              const DesignLog* timed) {
  DesignProgress progress;
  const auto log = read_design_log(study.folder);
  const std::optional<TokenFacts> tokens = read_token_facts(study.folder);
  fits::DesignSpec design = design_spec(study.spec, tokens, log ? &*log : timed);
  std::vector<Trajectory> done;
  std::vector<PlannedRun> next;
  if (log) {
    std::set<Trajectory> open;
    for (const RunRow& row : rows) {
      if (row.in_spec && !is_done(row.status)) open.insert(trajectory_of(row));
    }
    progress.rounds = log->rounds.size();
    progress.complete = complete_rounds(*log, open);
    progress.open_runs = open.size();
    for (std::size_t r = 0; r < progress.complete; ++r) {
      done.insert(done.end(), log->rounds[r].runs.begin(), log->rounds[r].runs.end());
    }
    for (const Trajectory& run : open) {
      progress.next_cost += design.cost(run.shape.layers, run.shape.width, {});
    }
    next = plan_runs(study.spec, {open.begin(), open.end()}, tokens);
  }
  const std::vector<fits::RunPoint> points = take_records(rows, done, design);
  progress.step = fits::next_batch(points, design);
  if (progress.complete == progress.rounds) {
    DesignRound round = round_of(study.spec, progress.step);
    if (!log) round = first_round(study.spec, design);
    progress.next_cost = round.cost;
    next = plan_runs(study.spec, round.runs, tokens);
  }
  progress.next_seconds = seconds_of(next, speed_known(rows, log ? &*log : nullptr, timed),
                                     timed ? timed->jobs : default_jobs(study.spec));
  return progress;
}

RoundsResult run_rounds(Study& study, int jobs, const ExecuteRuns& execute,
                        const std::function<void(const std::string&)>& note) {
  const std::optional<TokenFacts> tokens = read_token_facts(study.folder);
  std::optional<DesignLog> log = read_design_log(study.folder);
  if (!log) {
    log = new_design_log(study.spec);
    if (study.spec.design->unit == CostUnit::seconds) {
      time_design(study.spec, tokens, jobs, *log);
      require_timing(*log);
    }
    log->rounds.push_back(first_round(study.spec, design_spec(study.spec, tokens, &*log)));
    write_design_log(study.folder, *log);
  }
  while (true) {
    plan_again(study);
    double foreseen = 0;
    for (const DesignRound& round : log->rounds) foreseen += round.cost;
    note(fmt::format("round {}: {} of {} allowed", log->rounds.size(),
                     cost_text(foreseen, study.spec.design->unit),
                     cost_text(study.spec.design->budget, study.spec.design->unit)));
    RoundsResult result{execute(study), std::nullopt};
    if (result.runs.stopped || result.runs.failed > 0) return result;
    const DesignProgress progress = look_at_design(study, collect_rows(study));
    for (const fits::GoalState& goal : progress.step.goals) note("  " + goal_text(goal));
    if (progress.step.batch.empty()) {
      result.end = progress;
      return result;
    }
    log->rounds.push_back(round_of(study.spec, progress.step));
    write_design_log(study.folder, *log);
  }
}

}  // namespace fathom::study
