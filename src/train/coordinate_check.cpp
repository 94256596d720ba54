#include "train/coordinate_check.h"

#include <algorithm>
#include <cmath>

#include "core/counts.h"
#include "core/error.h"
#include "core/random.h"
#include "engine/device.h"
#include "engine/executor.h"
#include "model/transformer.h"
#include "train/trainer.h"

namespace fathom::train {
namespace {

using engine::Program;

double rms(const std::vector<float>& values) {
  double sum = 0;
  for (const float v : values) sum += static_cast<double>(v) * v;
  return std::sqrt(sum / as_double(values.size()));
}

double rms_difference(std::vector<float> a, const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return rms(a);
}

/// A chain to predict: three of four tokens follow from the one before, the others are drawn with
/// frequencies near 1/rank. Tokens without anything to learn would mislead: their gradients are
/// sums of as many unrelated terms as there are rows, and an update then moves activations by
/// sqrt(width) where gradients that agree move them by width, which is what the rules are made for.
std::vector<std::int32_t> chain(std::int64_t count, std::int64_t vocab) {
  const RandomStream random(7, 0);
  std::vector<std::int32_t> ids(as_size(count));
  std::int64_t token = 0;
  for (std::size_t n = 0; n < ids.size(); ++n) {
    if (random.uniform(2 * n) < 0.75) {
      token = (5 * token + 3) % vocab;
    } else {
      const double rank = std::pow(as_double(vocab), random.uniform(2 * n + 1));
      token = std::min(static_cast<std::int64_t>(rank) - 1, vocab - 1);
    }
    ids[n] = static_cast<std::int32_t>(token);
  }
  return ids;
}

void write_tokens(const model::Transformer& model, engine::Executor& executor) {
  const auto ids = chain(model.rows() + 1, model.spec.vocab);
  const std::span all(ids);
  executor.write_tokens(model.tokens, all.first(all.size() - 1));
  executor.write_tokens(model.targets, all.last(all.size() - 1));
}

CoordinateRow measure(const RunSpec& spec, std::int64_t steps) {
  model::BuildOptions options;
  options.batch = spec.batch;
  options.precision = spec.precision;
  options.optimiser = spec.optimiser;
  options.keep_activations = true;
  options.target = engine::target_of(spec.place());
  const auto model = model::build_transformer(spec.model, options);
  const auto owned = engine::make_executor(model->plan, spec.place());
  engine::Executor& executor = *owned;
  model::initialise(*model, executor, spec.seed);
  write_tokens(*model, executor);
  const engine::TensorId stream = model->streams.back();
  std::vector<float> first(as_size(model->plan.tensor(stream).size()));
  std::vector<float> now(first.size());
  CoordinateRow row{spec.model.layers, spec.model.width, {}, {}};
  engine::StepScalars scalars;
  scalars.loss_scale = 1.0f / static_cast<float>(model->rows());
  scalars.learning_rate = static_cast<float>(spec.learning_rate);
  for (std::int64_t step = 0; step <= steps; ++step) {
    scalars.step = step + 1;
    executor.run(Program::train, scalars);
    executor.read(stream, now);
    if (step == 0) first = now;
    row.stream_rms.push_back(rms(now));
    if (step > 0) row.stream_moved.push_back(rms_difference(now, first));
    executor.run(Program::update, scalars);
  }
  return row;
}

/// Exponent of the last value of `series` in `size`, over rows that vary in nothing else.
double exponent_of(const std::vector<CoordinateRow>& rows, std::int64_t CoordinateRow::*size,
                   std::vector<double> CoordinateRow::*series) {
  std::vector<double> sizes, values;
  for (const CoordinateRow& row : rows) {
    sizes.push_back(static_cast<double>(row.*size));
    values.push_back((row.*series).back());
  }
  return growth_exponent(sizes, values);
}

RunSpec with_width(const RunSpec& spec, std::int64_t width) {
  const std::int64_t head_size = spec.model.resolved_head_size();
  RunSpec varied = spec;
  varied.model.width = width;
  varied.model.head_size = head_size;
  varied.model.heads = std::max<std::int64_t>(1, width / head_size);
  varied.model.key_heads = 0;
  varied.model.ffn = spec.model.resolved_ffn() * width / spec.model.width;
  return varied;
}

RunSpec with_layers(const RunSpec& spec, std::int64_t layers) {
  RunSpec varied = spec;
  varied.model.layers = layers;
  varied.model.order.clear();
  return varied;
}

}  // namespace

CoordinateCheck coordinate_check(const RunSpec& spec, const CoordinateRequest& request) {
  if (request.steps < 1) throw ConfigError("a coordinate check needs at least one step");
  if (spec.model.vocab == 0) {
    throw ConfigError("--coord-check needs model.vocab: it reads no tokens");
  }
  CoordinateCheck check;
  for (const std::int64_t width : request.widths) {
    check.by_width.push_back(measure(with_width(spec, width), request.steps));
  }
  for (const std::int64_t layers : request.layers) {
    check.by_depth.push_back(measure(with_layers(spec, layers), request.steps));
  }
  const auto by_width = [&](std::vector<double> CoordinateRow::*series) {
    return exponent_of(check.by_width, &CoordinateRow::width, series);
  };
  const auto by_depth = [&](std::vector<double> CoordinateRow::*series) {
    return exponent_of(check.by_depth, &CoordinateRow::layers, series);
  };
  check.exponents = {.size_width = by_width(&CoordinateRow::stream_rms),
                     .size_depth = by_depth(&CoordinateRow::stream_rms),
                     .moved_width = by_width(&CoordinateRow::stream_moved),
                     .moved_depth = by_depth(&CoordinateRow::stream_moved)};
  return check;
}

double growth_exponent(const std::vector<double>& sizes, const std::vector<double>& values) {
  double mean_x = 0, mean_y = 0, covariance = 0, variance = 0;
  const auto count = as_double(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    mean_x += std::log(sizes[i]) / count;
    mean_y += std::log(values[i]) / count;
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    covariance += (std::log(sizes[i]) - mean_x) * (std::log(values[i]) - mean_y);
    variance += (std::log(sizes[i]) - mean_x) * (std::log(sizes[i]) - mean_x);
  }
  return variance > 0 ? covariance / variance : 0;
}

}  // namespace fathom::train
