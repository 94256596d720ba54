// Where a trainer's batches and held-out numbers come from: windows of a prepared text, or examples
// of a task. Both are functions of the spec and the number of the batch, without state.
#pragma once

#include <memory>

#include "data/token_set.h"
#include "train/evaluation.h"
#include "train/run_spec.h"

namespace fathom::train {

class Feed {
 public:
  virtual ~Feed() = default;
  /// Sends micro-batch `draw` to the model; returns how many of its targets count.
  virtual std::int64_t write_batch(std::uint64_t draw) = 0;
  virtual Evaluation evaluate() = 0;
};

/// The tokens are verified; all arguments must outlive the feed.
std::unique_ptr<Feed> make_text_feed(const RunSpec& spec, const data::TokenSet& tokens,
                                     const model::Transformer& model, engine::Executor& executor);
/// For a spec with a task.
std::unique_ptr<Feed> make_task_feed(const RunSpec& spec, const model::Transformer& model,
                                     engine::Executor& executor);

}  // namespace fathom::train
