// The hop network as a member of the model family, on the engine's own attention.
#include <cmath>
#include <map>

#include "core/error.h"
#include "lab/hops/hop_network.h"
#include "model/transformer.h"

namespace fathom::lab {
namespace {

model::ModelSpec spec_of(const HopNetwork& network) {
  model::ModelSpec spec;
  spec.layers = static_cast<std::int64_t>(network.layers.size());
  spec.width = static_cast<std::int64_t>(network.width());
  spec.heads = 1;
  spec.head_size = static_cast<std::int64_t>(network.alphabet) + 1;
  spec.ffn = spec.width;
  spec.vocab = static_cast<std::int64_t>(network.alphabet) + 1;
  spec.context = static_cast<std::int64_t>(network.length) + 1;
  spec.tied = false;
  spec.biases = false;
  spec.norm = model::NormPlace::none;
  spec.activation = model::FeedForward::identity;
  spec.mask = engine::MaskKind::strict;
  spec.positions = model::Positions::learned;
  return spec;
}

/// Rows [first_row, ...) of a row-major tensor of `columns` columns.
void place(std::vector<float>& target, std::size_t first_row, const WholeMatrix& matrix,
           double factor = 1) {
  for (std::size_t i = 0; i < matrix.rows; ++i) {
    for (std::size_t j = 0; j < matrix.columns; ++j) {
      target[(first_row + i) * matrix.columns + j] =
          static_cast<float>(factor * static_cast<double>(matrix.at(i, j)));
    }
  }
}

using Values = std::map<std::string, std::vector<float>>;

Values weights_of(const HopNetwork& network, const model::ModelSpec& spec, double beta) {
  const std::size_t width = network.width();
  const auto size = static_cast<std::size_t>(spec.head_size);
  // The model divides scores by sqrt(head size).
  const double sharpness = beta * std::sqrt(static_cast<double>(size));
  Values values;
  values["tokens.weight"].resize(network.tokens.values.size());
  place(values["tokens.weight"], 0, network.tokens);
  values["positions.weight"].resize(network.positions.values.size());
  place(values["positions.weight"], 0, network.positions);
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    const HopLayer& layer = network.layers[l];
    const std::string attention = "sub." + std::to_string(2 * l) + ".attention";
    const std::string ffn = "sub." + std::to_string(2 * l + 1) + ".ffn";
    std::vector<float> qkv(3 * size * width, 0);
    place(qkv, 0, layer.query, sharpness);
    place(qkv, size, layer.key);
    place(qkv, 2 * size, layer.read);
    values[attention + ".qkv.weight"] = std::move(qkv);
    values[attention + ".out.weight"].resize(width * size);
    place(values[attention + ".out.weight"], 0, layer.write);
    std::vector<float> identity(width * width, 0);
    for (std::size_t i = 0; i < width; ++i) identity[i * width + i] = 1;
    values[ffn + ".up.weight"] = std::move(identity);
    values[ffn + ".down.weight"].resize(width * width);
    place(values[ffn + ".down.weight"], 0, layer.update);
  }
  // Logits: the answer's coordinates, and one half for "nowhere", which is 0 there.
  std::vector<float> head((network.alphabet + 1) * width, 0);
  head[network.one] = 0.5f;
  for (std::size_t c = 0; c < network.alphabet; ++c) head[(1 + c) * width + network.answer + c] = 1;
  values["head.weight"] = std::move(head);
  return values;
}

void load(const model::Transformer& model, const Values& values, engine::Executor& executor) {
  for (const model::Parameter& parameter : model.parameters) {
    const auto found = values.find(parameter.name);
    if (found == values.end()) throw InternalError("no weights for " + parameter.name);
    executor.write(parameter.id, found->second);
  }
  executor.run(engine::Program::refresh, {});
}

int answer_of(const float* logits, std::size_t classes) {
  std::size_t best = 0;
  for (std::size_t c = 1; c < classes; ++c) {
    if (logits[c] > logits[best]) best = c;
  }
  return best == 0 ? kNoHop : static_cast<int>(best) - 1;
}

}  // namespace

std::vector<std::vector<int>> run_engine(const HopNetwork& network,
                                         const std::vector<Characters>& sequences, double beta,
                                         const engine::Device& device) {
  constexpr std::size_t kBatch = 32;
  model::BuildOptions options;
  options.batch = kBatch;
  options.purpose = model::Purpose::logits;
  const model::ModelSpec spec = spec_of(network);
  const auto built = model::build_transformer(spec, options);
  const auto executor = engine::make_executor(built->plan, device);
  load(*built, weights_of(network, spec, beta), *executor);
  const std::size_t context = network.length + 1;
  const std::size_t classes = network.alphabet + 1;
  std::vector<std::int32_t> ids(kBatch * context);
  std::vector<float> logits(kBatch * context * classes);
  std::vector<std::vector<int>> answers;
  for (std::size_t first = 0; first < sequences.size(); first += kBatch) {
    for (std::size_t b = 0; b < kBatch; ++b) {
      const Characters& sequence = sequences[std::min(first + b, sequences.size() - 1)];
      ids[b * context] = 0;
      for (std::size_t i = 0; i < network.length; ++i) ids[b * context + 1 + i] = 1 + sequence[i];
    }
    executor->write_tokens(built->tokens, ids);
    executor->run(engine::Program::evaluate, {});
    executor->read(built->logits, logits);
    for (std::size_t b = 0; b < kBatch && first + b < sequences.size(); ++b) {
      answers.emplace_back();
      for (std::size_t i = 1; i < context; ++i) {
        answers.back().push_back(answer_of(&logits[(b * context + i) * classes], classes));
      }
    }
  }
  return answers;
}

}  // namespace fathom::lab
