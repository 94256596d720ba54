#include "study/planned_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/counts.h"
#include "core/error.h"
#include "shape/flops.h"
#include "shape/memory.h"
#include "shape/parameters.h"

namespace fathom::study {
namespace {

Norm norm_of(const model::ModelSpec& model) {
  if (model.norm == model::NormPlace::none) return Norm::nonparametric;
  return model.norm_kind == engine::NormKind::layer ? Norm::layer : Norm::rms;
}

std::int64_t steps_for(double tokens, const train::RunSpec& spec) {
  const double steps = std::ceil(tokens / as_double(spec.tokens_per_step()));
  constexpr double kMostSteps = 1e15;  // far beyond any run, and their tokens still fit 64 bits
  if (!(steps <= kMostSteps)) {
    throw ConfigError(
        fmt::format("budget: {} tokens are {} steps of {} tokens; at most {} are possible", tokens,
                    steps, spec.tokens_per_step(), kMostSteps));
  }
  return std::max<std::int64_t>(1, std::llround(steps));
}

/// The first step of a WSD schedule whose factor is below 1.
std::int64_t decay_begins(const train::Schedule& schedule) {
  std::int64_t step = schedule.steps;
  while (step > schedule.warmup && schedule.factor(step - 1) < 1) --step;
  return step;
}

bool same_before_decay(const train::RunSpec& a, const train::RunSpec& b) {
  return a.schedule.kind == train::ScheduleKind::wsd && a.schedule.warmup == b.schedule.warmup &&
         a.patience == 0 && a.corrected_learning_rate() == b.corrected_learning_rate();
}

/// `chain`: the runs of one shape and seed, shortest first.
void link_stems(std::vector<PlannedRun*>& chain) {
  for (std::size_t i = 1; i < chain.size(); ++i) {
    PlannedRun& shorter = *chain[i - 1];
    PlannedRun& longer = *chain[i];
    const std::int64_t step = decay_begins(shorter.spec.schedule);
    if (!same_before_decay(shorter.spec, longer.spec) || step < 1) continue;
    if (decay_begins(longer.spec.schedule) < step) continue;
    shorter.stem_step = step;
    longer.stem_from = shorter.id;
    longer.shared_steps = step;
  }
}

std::int64_t expected_vocabulary(const CorpusChoice& corpus) {
  if (corpus.tokenizer.kind == "bpe") {
    return as_signed(corpus.tokenizer.vocabulary);
  }
  return corpus.tokenizer.kind == "bytes" ? 257 : 128;  // chars: a guess until the text is read
}

class Planner {
 public:
  Planner(const StudySpec& spec, const std::optional<TokenFacts>& tokens)
      : spec_(spec),
        tokens_(tokens),
        vocabulary_(tokens ? tokens->vocabulary : expected_vocabulary(spec.corpus)) {}

  std::vector<PlannedRun> plan(const std::vector<Trajectory>& trajectories) {
    for (const Trajectory& trajectory : trajectories) add_trajectory(trajectory);
    std::map<std::pair<GridShape, std::uint64_t>, std::vector<PlannedRun*>> chains;
    for (PlannedRun& run : runs_) {
      const model::ModelSpec& m = run.spec.model;
      chains[{{m.layers, m.width, m.heads}, run.spec.seed}].push_back(&run);
    }
    for (auto& [key, chain] : chains) link_stems(chain);
    // Long runs first, so that the last one does not keep the cores waiting; a stem's user after
    // its maker.
    std::stable_sort(runs_.begin(), runs_.end(), [](const PlannedRun& a, const PlannedRun& b) {
      const bool a_waits = a.shared_steps > 0, b_waits = b.shared_steps > 0;
      if (a_waits != b_waits) return b_waits;
      return a_waits ? a.tokens < b.tokens : a.flops > b.flops;
    });
    return std::move(runs_);
  }

 private:
  void add_trajectory(const Trajectory& trajectory) {
    const train::RunSpec probe = run_spec(trajectory.shape, 1000, trajectory.seed);
    const std::int64_t size = count_parameters(shape_of(probe.model)).non_embedding();
    std::vector<double> budgets = spec_.budget.tokens;
    if (budgets.empty()) budgets = {spec_.budget.tokens_per_parameter * as_double(size)};
    for (const double budget : budgets) {
      add(run_spec(trajectory.shape, steps_for(budget, probe), trajectory.seed));
    }
  }

  /// The spec's text is read once per shape and length: a long list of seeds makes it long too.
  train::RunSpec run_spec(const GridShape& shape, std::int64_t steps, std::uint64_t seed) {
    auto known = read_.find({shape, steps});
    const bool refused = as_double(seed) > train::kMost;  // by the reader, in its words
    if (known == read_.end() || refused) {
      known = read_.emplace(std::pair(shape, steps), spec_.run_spec(shape, steps, seed)).first;
    }
    train::RunSpec run = known->second;
    run.seed = seed;
    run.model.vocab = vocabulary_;
    return run;
  }

  void add(train::RunSpec run) {
    runs_.push_back(
        plan_run(std::move(run), tokens_ ? std::optional(tokens_->hash) : std::nullopt));
  }

  const StudySpec& spec_;
  const std::optional<TokenFacts>& tokens_;
  std::int64_t vocabulary_;
  std::map<std::pair<GridShape, std::int64_t>, train::RunSpec> read_;
  std::vector<PlannedRun> runs_;
};

}  // namespace

PlannedRun plan_run(train::RunSpec spec, const std::optional<Hash128>& tokens) {
  const Shape shape = shape_of(spec.model);
  PlannedRun planned;
  planned.parameters = count_parameters(shape).non_embedding();
  planned.total_parameters = count_parameters(shape).total();
  planned.tokens = spec.total_tokens();
  planned.flops = count_flops(shape).train_per_token * as_double(planned.tokens);
  const double rows = as_double(spec.batch * spec.model.context);
  planned.memory_bytes = count_training_memory(shape, rows).total();
  if (tokens) planned.id = train::run_id(spec, *tokens);
  planned.spec = std::move(spec);
  return planned;
}

double PlannedRun::fresh_share() const {
  return 1 - as_double(shared_steps) / as_double(spec.schedule.steps);
}

std::string PlannedRun::label() const {
  return fmt::format("{}x{} seed {}", spec.model.layers, spec.model.width, spec.seed);
}

Shape shape_of(const model::ModelSpec& model) {
  Shape shape;
  shape.layers = model.layers;
  shape.width = model.width;
  shape.heads = model.heads;
  shape.kv_heads = model.resolved_key_heads();
  shape.head_size = model.resolved_head_size();
  shape.ffn = model.feed_forward ? model.resolved_ffn() : 0;
  shape.ffn_matrices = model.activation == model::FeedForward::swiglu ? 3 : 2;
  shape.vocab = model.vocab;
  shape.context = model.context;
  shape.tied = model.tied;
  Conventions& c = shape.conventions;
  c.name = "fathom";
  c.norm = norm_of(model);
  c.norms_per_layer = model.feed_forward ? 2 : 1;
  c.final_norm = model.norm == model::NormPlace::pre;
  c.qkv_bias = c.out_bias = model.biases;
  c.ffn_bias = model.biases && model.feed_forward;
  // Shapes have more kinds of positions; those that models have share their names.
  c.positions = find_enum<fathom::Positions>(name_of(model.positions)).value();
  return shape;
}

std::vector<Trajectory> grid_trajectories(const StudySpec& spec) {
  std::vector<Trajectory> trajectories;
  for (const GridShape& shape : spec.grid.shapes) {
    for (const std::uint64_t seed : spec.seeds.of_size(shape.nominal_size())) {
      trajectories.push_back({shape, seed});
    }
  }
  return trajectories;
}

std::vector<PlannedRun> plan_runs(const StudySpec& spec,
                                  const std::vector<Trajectory>& trajectories,
                                  const std::optional<TokenFacts>& tokens) {
  return Planner(spec, tokens).plan(trajectories);
}

std::vector<PlannedRun> plan_runs(const StudySpec& spec, const std::optional<TokenFacts>& tokens) {
  return plan_runs(spec, grid_trajectories(spec), tokens);
}

}  // namespace fathom::study
