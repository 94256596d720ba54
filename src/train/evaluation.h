// What a model scores on held-out text or on held-out examples of a task.
#pragma once

#include <cmath>
#include <optional>

#include "data/evaluation_set.h"
#include "data/tasks/task_scores.h"

namespace fathom::engine {
class Executor;
}
namespace fathom::model {
struct Transformer;
}

namespace fathom::train {

struct Evaluation {
  double loss = 0;           // mean nats per token; for a task, per target that counts
  double bits_per_byte = 0;  // of text; NaN for a task
  double accuracy = NAN;     // of a task, by target
  double sequence_accuracy = NAN;
  std::optional<data::TaskScores> scores = {};
};

/// Losses summed over all targets of the windows, in nats; whole batches of the model's size.
double summed_loss(const model::Transformer& model, engine::Executor& executor,
                   const data::EvaluationSet& windows);

}  // namespace fathom::train
