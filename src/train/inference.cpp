// Evaluation and generation with given weights, on the processor in f32.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/counts.h"
#include "core/error.h"
#include "core/random.h"
#include "data/evaluation_set.h"
#include "train/trainer.h"
#include "train/weights.h"
#include "train/weights_runner.h"

namespace fathom::train {
namespace {

using data::TokenId;
using engine::Program;

WeightsRunner runner_of(const Weights& weights, model::Purpose purpose, std::int64_t batch,
                        int threads) {
  model::BuildOptions options;
  options.batch = batch;
  options.purpose = purpose;
  return {weights, options, threads};
}

void check(const Weights& weights, const std::vector<TokenId>& prompt,
           const GenerationOptions& options) {
  if (weights.spec.mask != engine::MaskKind::causal) {
    throw ConfigError("generation needs a causal model; this one has another mask");
  }
  if (prompt.empty()) throw ConfigError("the prompt must hold at least one token");
  validate(options);
  for (const TokenId id : prompt) {
    if (id < 0 || id >= weights.spec.vocab) {
      throw ConfigError(fmt::format("the prompt's token {} is outside the model's vocabulary of {}",
                                    id, weights.spec.vocab));
    }
  }
}

}  // namespace

void validate(const GenerationOptions& options) {
  if (options.tokens < 1) throw ConfigError("--tokens must be at least 1");
  if (!(options.temperature >= 0)) throw ConfigError("--temperature must not be negative");
  if (options.top_k < 0) throw ConfigError("--top-k must not be negative");
}

TokenId sample_token(std::span<const float> logits, const GenerationOptions& options, double u) {
  std::vector<TokenId> order(logits.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<TokenId>(i);
  const auto better = [&](TokenId a, TokenId b) {
    const float x = logits[a], y = logits[b];
    return x > y || (x == y && a < b);
  };
  if (options.temperature == 0) return *std::min_element(order.begin(), order.end(), better);
  std::sort(order.begin(), order.end(), better);
  if (options.top_k > 0 && options.top_k < std::ssize(order)) {
    order.resize(as_size(options.top_k));
  }
  const double top = logits[order.front()];
  std::vector<double> weights;
  double sum = 0;
  for (const TokenId id : order) {
    weights.push_back(std::exp((logits[id] - top) / options.temperature));
    sum += weights.back();
  }
  double left = u * sum;
  for (std::size_t i = 0; i < order.size(); ++i) {
    left -= weights[i];
    if (left < 0) return order[i];
  }
  return order.back();
}

WeightsEvaluation evaluate_weights(const Weights& weights, const data::TokenSet& tokens,
                                   data::Split split, std::uint64_t limit_tokens, int threads) {
  constexpr std::int64_t kBatch = 8;
  const auto vocabulary = as_signed(tokens.tokenizer().vocabulary());
  if (weights.spec.vocab < vocabulary) {
    throw ConfigError(fmt::format("the model's vocabulary of {} is smaller than the corpus's {}",
                                  weights.spec.vocab, vocabulary));
  }
  if (weights.tokenizer && weights.tokenizer->hash() != tokens.tokenizer().hash()) {
    throw ConfigError(
        "the corpus was prepared with another tokenizer than the model's; prepare it "
        "again with --tokenizer-from");
  }
  const auto context = as_size(weights.spec.context);
  const data::EvaluationSet set(tokens.file(split), context, limit_tokens);
  const WeightsRunner runner = runner_of(weights, model::Purpose::training, kBatch, threads);
  const double nats = summed_loss(*runner.model, *runner.executor, set);
  return {nats / as_double(set.target_tokens()),
          data::bits_per_byte(nats, set.target_bytes(tokens.tokenizer().token_bytes())),
          set.target_tokens()};
}

void generate(const Weights& weights, std::vector<TokenId> prompt, const GenerationOptions& options,
              const std::function<void(TokenId)>& emit) {
  check(weights, prompt, options);
  const WeightsRunner runner = runner_of(weights, model::Purpose::logits, 1, options.threads);
  const auto context = as_size(weights.spec.context);
  const auto vocab = as_size(weights.spec.vocab);
  const RandomStream stream(options.seed, 0);
  std::vector<TokenId> window(context, 0);
  std::vector<float> logits(context * vocab);
  for (std::int64_t n = 0; n < options.tokens; ++n) {
    // The last `context` tokens; what follows them is masked, so its value does not matter.
    const std::size_t seen = std::min(prompt.size(), context);
    std::copy(prompt.end() - static_cast<std::ptrdiff_t>(seen), prompt.end(), window.begin());
    runner.executor->write_tokens(runner.model->tokens, window);
    runner.executor->run(Program::evaluate, {});
    runner.executor->read(runner.model->logits, logits);
    const TokenId next = sample_token(std::span(logits).subspan((seen - 1) * vocab, vocab), options,
                                      stream.uniform(as_size(n)));
    prompt.push_back(next);
    emit(next);
  }
}

void generate_text(const Weights& weights, const std::string& prompt,
                   const GenerationOptions& options,
                   const std::function<void(std::string_view)>& emit) {
  if (!weights.tokenizer) {
    throw DataError(fmt::format("no tokenizer for this model: {}", weights.tokenizer_note));
  }
  const data::Tokenizer& tokenizer = *weights.tokenizer;
  std::vector<TokenId> ids = tokenizer.text_start();
  tokenizer.encoder()->encode(prompt, ids);
  if (ids.empty()) ids.push_back(tokenizer.end_of_document());
  generate(weights, std::move(ids), options, [&](TokenId id) {
    if (static_cast<std::uint64_t>(id) < tokenizer.vocabulary()) emit(tokenizer.bytes_of(id));
  });
}

}  // namespace fathom::train
