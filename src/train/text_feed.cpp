#include <fmt/format.h>

#include "core/counts.h"
#include "core/error.h"
#include "data/batch_sampler.h"
#include "engine/executor.h"
#include "model/transformer.h"
#include "train/feed.h"

namespace fathom::train {
namespace {

data::Sampling sampling_of(const RunSpec& spec) {
  const std::int64_t context = spec.model.context;
  if (spec.train_tokens > 0 && spec.train_tokens < context) {
    throw ConfigError(fmt::format("data.train_tokens = {} is less than one window of {} tokens",
                                  spec.train_tokens, context));
  }
  return {as_size(context), as_size(spec.batch), spec.seed, as_size(spec.train_tokens / context)};
}

class TextFeed : public Feed {
 public:
  TextFeed(const RunSpec& spec, const data::TokenSet& tokens, const model::Transformer& model,
           engine::Executor& executor)
      : model_(model),
        executor_(executor),
        training_(tokens.file(data::Split::train)),
        sampler_(training_.size(), sampling_of(spec), training_.name()),
        evaluation_(tokens.file(data::Split::valid), as_size(spec.model.context),
                    as_size(spec.eval_tokens)),
        evaluation_bytes_(evaluation_.target_bytes(tokens.tokenizer().token_bytes())),
        inputs_(as_size(model.rows())),
        targets_(inputs_.size()),
        starts_(as_size(spec.batch)) {
    if (spec.device == engine::DeviceKind::cuda) {
      text_held_ =
          executor.hold_text(training_.ids(), static_cast<int>(training_.info().bytes_per_id));
    }
  }

  std::int64_t write_batch(std::uint64_t draw) override {
    if (text_held_) {
      for (std::size_t row = 0; row < starts_.size(); ++row) {
        starts_[row] = sampler_.position(draw, row);
      }
      executor_.write_windows(model_.tokens, model_.targets, starts_);
    } else {
      sampler_.read(training_, draw, inputs_, targets_);
      executor_.write_tokens(model_.tokens, inputs_);
      executor_.write_tokens(model_.targets, targets_);
    }
    return std::ssize(targets_);
  }

  Evaluation evaluate() override {
    const double nats = summed_loss(model_, executor_, evaluation_);
    return {nats / as_double(evaluation_.target_tokens()),
            data::bits_per_byte(nats, evaluation_bytes_)};
  }

 private:
  const model::Transformer& model_;
  engine::Executor& executor_;
  const data::TokenFile& training_;
  data::BatchSampler sampler_;
  data::EvaluationSet evaluation_;
  std::uint64_t evaluation_bytes_;
  std::vector<std::int32_t> inputs_, targets_;
  std::vector<std::uint64_t> starts_;
  bool text_held_ = false;  // batches are cut on the model's device
};

}  // namespace

double summed_loss(const model::Transformer& model, engine::Executor& executor,
                   const data::EvaluationSet& windows) {
  const auto rows = as_size(model.rows());
  const auto context = as_size(model.spec.context);
  std::vector<std::int32_t> inputs(rows), targets(rows);
  std::vector<float> losses(rows);
  double nats = 0;
  for (std::uint64_t first = 0; first < windows.windows(); first += rows / context) {
    const std::uint64_t counted = windows.read(first, inputs, targets);
    executor.write_tokens(model.tokens, inputs);
    executor.write_tokens(model.targets, targets);
    executor.run(engine::Program::evaluate, {});
    executor.read(model.losses, losses);
    for (std::size_t i = 0; i < counted * context; ++i) nats += losses[i];
  }
  return nats;
}

std::unique_ptr<Feed> make_text_feed(const RunSpec& spec, const data::TokenSet& tokens,
                                     const model::Transformer& model, engine::Executor& executor) {
  return std::make_unique<TextFeed>(spec, tokens, model, executor);
}

}  // namespace fathom::train
