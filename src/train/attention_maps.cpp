#include "train/attention_maps.h"

#include <algorithm>
#include <cmath>

#include "core/counts.h"
#include "core/error.h"
#include "train/weights_runner.h"

namespace fathom::train {
namespace {

using engine::AttentionShape;

/// What one attention sublayer reads for one sequence: qkv [T, (H + 2 G) K].
struct AttentionInput {
  AttentionShape shape;
  std::vector<float> qkv;
};

void fill_row(const AttentionInput& input, std::int64_t head, std::int64_t query,
              std::span<float> row) {
  const AttentionShape& shape = input.shape;
  const std::int64_t key_head = shape.heads + head * shape.key_heads / shape.heads;
  const auto vector = [&](std::int64_t t, std::int64_t place) {
    return input.qkv.data() + t * shape.qkv_cols() + place * shape.head_size;
  };
  const float* q = vector(query, head);
  std::fill(row.begin(), row.end(), -INFINITY);
  for (std::int64_t j = 0; j < shape.context; ++j) {
    if (!shape.allows(query, j)) continue;
    const float* k = vector(j, key_head);
    row[as_size(j)] = 0;
    for (std::int64_t i = 0; i < shape.head_size; ++i) row[as_size(j)] += q[i] * k[i];
    row[as_size(j)] *= shape.scale;
  }
  const float top = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (float& value : row) {
    value = top == -INFINITY ? 0 : std::exp(value - top);  // a row may see no keys
    sum += static_cast<double>(value);
  }
  for (float& value : row) value = sum > 0 ? static_cast<float>(value / sum) : 0;
}

std::vector<AttentionInput> attention_inputs(const WeightsRunner& runner) {
  std::vector<AttentionInput> inputs;
  for (const engine::ForwardOp& op : runner.model->plan.forward()) {
    const auto* attention = std::get_if<engine::Attention>(&op);
    if (attention == nullptr) continue;
    AttentionInput input{attention->shape, {}};
    input.qkv.resize(as_size(runner.model->plan.tensor(attention->qkv).size()));
    runner.executor->read(attention->qkv, input.qkv);
    inputs.push_back(std::move(input));
  }
  return inputs;
}

}  // namespace

void watch_attention(const Weights& weights, std::span<const data::TokenId> tokens, int threads,
                     const MapWatcher& watcher) {
  if (weights.spec.attention != engine::AttentionKind::softmax) {
    throw ConfigError("attention maps need attention = \"softmax\"");
  }
  if (weights.spec.positions == model::Positions::rotary) {
    throw ConfigError("attention maps are not read from models with rotary positions");
  }
  const std::size_t context = as_size(weights.spec.context);
  const std::size_t sequences = tokens.size() / context;
  if (sequences == 0 || tokens.size() % context != 0) {
    throw InternalError("watch_attention: not whole sequences");
  }
  model::BuildOptions options;
  options.batch = 1;
  options.purpose = model::Purpose::logits;
  options.keep_activations = true;
  const WeightsRunner runner(weights, options, threads);
  std::vector<float> map(context * context);
  for (std::size_t s = 0; s < sequences; ++s) {
    runner.executor->write_tokens(runner.model->tokens, tokens.subspan(s * context, context));
    runner.executor->run(engine::Program::evaluate, {});
    const std::vector<AttentionInput> inputs = attention_inputs(runner);
    for (std::size_t layer = 0; layer < inputs.size(); ++layer) {
      for (std::int64_t head = 0; head < weights.spec.heads; ++head) {
        for (std::size_t i = 0; i < context; ++i) {
          fill_row(inputs[layer], head, as_signed(i), std::span(map).subspan(i * context, context));
        }
        watcher(s, as_signed(layer), head, map);
      }
    }
  }
}

}  // namespace fathom::train
