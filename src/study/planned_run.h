// A study's runs: every shape at every budget with every seed, as run specs with what they cost.
//
//   steps = budget / (batch * accumulation * context), rounded up
//
// A WSD schedule is constant until its last part, so a run with a longer budget begins with exactly
// the steps of a shorter one: it may start from the checkpoint the shorter run made before its
// decay (its stem). The bits are those of a run from scratch; only the time differs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/hash.h"
#include "shape/shape.h"
#include "study/study_spec.h"

namespace fathom::study {

struct PlannedRun {
  std::string id;  // empty while the tokens are not prepared
  train::RunSpec spec;
  std::int64_t parameters = 0;        // non-embedding, N
  std::int64_t total_parameters = 0;  // with embeddings
  std::int64_t tokens = 0;
  double flops = 0;            // of training, causal attention counted once
  double memory_bytes = 0;     // estimate: state, activations, logits
  std::int64_t stem_step = 0;  // > 0: keep a checkpoint here for a longer run
  std::string stem_from;       // id of the run whose stem this one may start from
  std::int64_t shared_steps = 0;

  /// The part of the steps that no shorter run has done before.
  double fresh_share() const;
  std::string label() const;  // "6x128 seed 1"
};

/// What the tokens decide; unknown before they are prepared.
struct TokenFacts {
  Hash128 hash;
  std::int64_t vocabulary = 0;
  std::int64_t training_tokens = 0;  // of one pass over the text
};

/// The counting room's view of a model.
Shape shape_of(const model::ModelSpec& model);

/// A run planned by itself; it has an id where the hash of its tokens is given (for a task, the
/// hash of no tokens).
PlannedRun plan_run(train::RunSpec spec, const std::optional<Hash128>& tokens);

/// A shape and a seed, trained to every budget.
struct Trajectory {
  GridShape shape;
  std::uint64_t seed = 1;
  auto operator<=>(const Trajectory&) const = default;
};

/// Those of the spec's grid.
std::vector<Trajectory> grid_trajectories(const StudySpec& spec);

/// Largest first, a run after the one whose stem it uses. Without `tokens` the vocabulary is the
/// one asked for and runs have no id.
std::vector<PlannedRun> plan_runs(const StudySpec& spec,
                                  const std::vector<Trajectory>& trajectories,
                                  const std::optional<TokenFacts>& tokens);
/// Of the grid.
std::vector<PlannedRun> plan_runs(const StudySpec& spec, const std::optional<TokenFacts>& tokens);

}  // namespace fathom::study
