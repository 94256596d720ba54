#include <algorithm>
#include <cmath>

#include "core/counts.h"
#include "data/tasks/task_scores.h"
#include "engine/device.h"
#include "engine/executor.h"
#include "model/transformer.h"
#include "train/feed.h"

namespace fathom::train {
namespace {

using data::ExampleUse;
using data::TokenId;

/// The same model up to its logits, with the weights of the one being trained.
class LogitReader {
 public:
  explicit LogitReader(const RunSpec& spec) {
    model::ModelSpec exact = spec.model;
    exact.dropout = 0;
    model::BuildOptions options;
    options.batch = spec.batch;
    options.precision = spec.precision;
    options.purpose = model::Purpose::logits;
    options.target = engine::target_of(spec.place());
    model_ = model::build_transformer(exact, options);
    executor_ = engine::make_executor(model_->plan, spec.place());
    logits_.resize(as_size(model_->rows() * spec.model.vocab));
  }

  void take_weights(const model::Transformer& model, const engine::Executor& executor) {
    std::vector<float> values;
    for (std::size_t i = 0; i < model.parameters.size(); ++i) {
      const engine::TensorId id = model.parameters[i].id;
      values.resize(as_size(model.plan.tensor(id).size()));
      executor.read(id, values);
      executor_->write(model_->parameters[i].id, values);
    }
    executor_->run(engine::Program::refresh, {});
  }

  /// Logits of all rows, [B T, V].
  std::span<const float> read(std::span<const TokenId> inputs) {
    executor_->write_tokens(model_->tokens, inputs);
    executor_->run(engine::Program::evaluate, {});
    executor_->read(model_->logits, logits_);
    return logits_;
  }

 private:
  std::unique_ptr<const model::Transformer> model_;
  std::unique_ptr<engine::Executor> executor_;
  std::vector<float> logits_;
};

/// -ln softmax(z)[target]
float cross_entropy(std::span<const float> z, TokenId target) {
  const float top = *std::max_element(z.begin(), z.end());
  double sum = 0;
  for (const float value : z) sum += std::exp(static_cast<double>(value) - top);
  return static_cast<float>(std::log(sum) + top - z[as_size(target)]);
}

class TaskFeed : public Feed {
 public:
  TaskFeed(const RunSpec& spec, const model::Transformer& model, engine::Executor& executor)
      : spec_(spec),
        model_(model),
        executor_(executor),
        task_(data::make_task(spec.task, spec.model.context)),
        inputs_(as_size(model.rows())),
        targets_(inputs_.size()) {}

  std::int64_t write_batch(std::uint64_t draw) override {
    for (std::int64_t row = 0; row < spec_.batch; ++row) {
      task_->example(spec_.seed, ExampleUse::training, draw * as_size(spec_.batch) + as_size(row),
                     row_of(inputs_, row), row_of(targets_, row));
    }
    executor_.write_tokens(model_.tokens, inputs_);
    executor_.write_tokens(model_.targets, targets_);
    return std::ssize(targets_) - std::count(targets_.begin(), targets_.end(), data::kNoTarget);
  }

  /// Whole examples, at least one, of `eval_tokens` tokens.
  Evaluation evaluate() override {
    if (!reader_) reader_ = std::make_unique<LogitReader>(spec_);
    reader_->take_weights(model_, executor_);
    data::TaskScorer scorer(*task_);
    const std::int64_t examples = std::max<std::int64_t>(1, spec_.eval_tokens / context());
    for (std::int64_t first = 0; first < examples; first += spec_.batch) {
      score_batch(scorer, first, std::min(spec_.batch, examples - first));
    }
    data::TaskScores scores = scorer.scores();
    return {scorer.mean_loss(), NAN, scores.accuracy, scores.sequence_accuracy, std::move(scores)};
  }

 private:
  std::int64_t context() const { return spec_.model.context; }
  std::span<TokenId> row_of(std::vector<TokenId>& values, std::int64_t row) const {
    return std::span(values).subspan(as_size(row * context()), as_size(context()));
  }

  void score_batch(data::TaskScorer& scorer, std::int64_t first, std::int64_t count) {
    std::vector<std::int64_t> groups;
    for (std::int64_t row = 0; row < spec_.batch; ++row) {  // rows past the last do not count
      groups.push_back(task_->example(spec_.seed, ExampleUse::held_out, as_size(first + row),
                                      row_of(inputs_, row), row_of(targets_, row)));
    }
    const std::span<const float> logits = reader_->read(inputs_);
    const auto vocab = as_size(spec_.model.vocab);
    std::vector<TokenId> predictions(as_size(context()));
    std::vector<float> losses(predictions.size());
    for (std::int64_t row = 0; row < count; ++row) {
      const std::span<const TokenId> targets = row_of(targets_, row);
      for (std::size_t t = 0; t < targets.size(); ++t) {
        if (targets[t] == data::kNoTarget) continue;
        const auto z = logits.subspan((as_size(row * context()) + t) * vocab, vocab);
        predictions[t] = static_cast<TokenId>(std::max_element(z.begin(), z.end()) - z.begin());
        losses[t] = cross_entropy(z, targets[t]);
      }
      scorer.add(groups[as_size(row)], row_of(inputs_, row), targets, predictions, losses);
    }
  }

  RunSpec spec_;
  const model::Transformer& model_;
  engine::Executor& executor_;
  std::unique_ptr<const data::Task> task_;
  std::vector<TokenId> inputs_, targets_;
  std::unique_ptr<LogitReader> reader_;  // made for the first evaluation
};

}  // namespace

std::unique_ptr<Feed> make_task_feed(const RunSpec& spec, const model::Transformer& model,
                                     engine::Executor& executor) {
  return std::make_unique<TaskFeed>(spec, model, executor);
}

}  // namespace fathom::train
