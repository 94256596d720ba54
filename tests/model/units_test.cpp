// Units of a model and the model without those that give nothing.
#include "model/units.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/counts.h"
#include "core/error.h"
#include "engine/ref/ref_executor.h"
#include "model/transformer.h"

namespace fathom::model {
namespace {

ModelSpec plain_spec() {
  ModelSpec spec;
  spec.layers = 3;
  spec.width = 16;
  spec.heads = 4;
  spec.ffn = 20;
  spec.vocab = 23;
  spec.context = 12;
  return spec;
}

ModelSpec gated_spec() {
  ModelSpec spec = plain_spec();
  spec.key_heads = 2;
  spec.head_size = 6;
  spec.biases = false;
  spec.norm_kind = engine::NormKind::rms;
  spec.activation = FeedForward::swiglu;
  spec.positions = Positions::rotary;
  return spec;
}

/// No value is zero, biases and gains neither.
ParameterValues dense_parameters(const ModelSpec& spec) {
  const auto model = build_transformer(spec, {});
  ParameterValues values;
  for (const Parameter& parameter : model->parameters) {
    std::vector<float> v = initial_values(*model, parameter, 5);
    for (std::size_t i = 0; i < v.size(); ++i) {
      v[i] = 8 * v[i] + 0.2f * std::sin(static_cast<float>(i + parameter.name.size()) + 0.1f);
    }
    values[parameter.name] = v;
  }
  return values;
}

std::vector<double> double_logits(const ModelSpec& spec, const ParameterValues& values) {
  BuildOptions options;
  options.purpose = Purpose::logits;
  const auto model = build_transformer(spec, options);
  engine::RefExecutor executor(model->plan);
  for (const Parameter& parameter : model->parameters) {
    executor.write(parameter.id, values.at(parameter.name));
  }
  executor.run(engine::Program::refresh, {});
  std::vector<std::int32_t> tokens(as_size(model->rows()));
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i * 5 % 23);
  executor.write_tokens(model->tokens, tokens);
  executor.run(engine::Program::evaluate, {});
  const double* logits = executor.data(model->logits);
  return {logits, logits + std::ssize(tokens) * 23};
}

void clear(const UnitBlock& block, ParameterValues& values) {
  std::vector<float>& matrix = values.at(block.parameter);
  for (std::int64_t r = 0; r < block.rows; ++r) {
    for (std::int64_t c = 0; c < block.cols; ++c) {
      const std::int64_t place = block.is_rows ? r : c;
      if (place < block.first || place >= block.first + block.count) continue;
      matrix[as_size(r * block.cols + c)] = 0;
    }
  }
}

/// Makes units zero: what they read, or for every other one what they write.
void clear_units(const std::vector<Unit>& units, const std::vector<std::size_t>& places,
                 ParameterValues& values) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Unit& unit = units.at(places[i]);
    for (const UnitBlock& block : i % 2 == 0 ? unit.reads : unit.writes) clear(block, values);
  }
}

std::int64_t count_of(const ParameterValues& values) {
  std::int64_t count = 0;
  for (const auto& [name, list] : values) count += std::ssize(list);
  return count;
}

void expect_same_logits(const ModelSpec& spec, const ParameterValues& values,
                        const CompactedModel& compacted) {
  const std::vector<double> before = double_logits(spec, values);
  const std::vector<double> after = double_logits(compacted.spec, compacted.parameters);
  ASSERT_EQ(before.size(), after.size());
  double largest = 0;
  double difference = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    largest = std::max(largest, std::abs(before[i]));
    difference = std::max(difference, std::abs(before[i] - after[i]));
  }
  EXPECT_LT(difference, 1e-6);
  EXPECT_GT(largest, 0.05);  // the comparison says something
  const auto model = build_transformer(compacted.spec, {});
  EXPECT_EQ(model->parameter_count(), count_of(compacted.parameters));
}

TEST(Units, CoverEveryNeuronAndHead) {
  const std::vector<Unit> units = units_of(plain_spec());
  EXPECT_EQ(units.size(), 3u * (4 + 20));
  EXPECT_EQ(units[0].kind, UnitKind::head);
  EXPECT_EQ(units[4].kind, UnitKind::neuron);
  EXPECT_EQ(units_of(gated_spec()).size(), 3u * (2 + 20));  // heads by key head
}

TEST(Compaction, LayersOfDifferentSizesGiveTheSameLogits) {
  for (const ModelSpec& spec : {plain_spec(), gated_spec()}) {
    ParameterValues values = dense_parameters(spec);
    const std::vector<Unit> units = units_of(spec);
    const std::size_t layer = units.size() / 3;
    // A head, two neurons, a head of the second layer, seven neurons of the last.
    std::vector<std::size_t> places{1, 6, 9, layer};
    for (std::size_t i = 0; i < 7; ++i) places.push_back(3 * layer - 1 - i);
    clear_units(units, places, values);
    const CompactedModel compacted = compact(spec, values);
    const std::int64_t shared = spec.heads / spec.resolved_key_heads();
    EXPECT_EQ(compacted.spec.layer_heads, (std::vector<std::int64_t>{4 - shared, 4 - shared, 4}));
    EXPECT_EQ(compacted.spec.layer_ffn, (std::vector<std::int64_t>{18, 20, 13}));
    EXPECT_EQ(compacted.counts[5].idle, 7);
    expect_same_logits(spec, values, compacted);
    // A second time there is nothing to take out, and the lists stay.
    const CompactedModel again = compact(compacted.spec, compacted.parameters);
    EXPECT_EQ(again.spec.layer_ffn, compacted.spec.layer_ffn);
    EXPECT_EQ(again.parameters, compacted.parameters);
  }
}

TEST(Compaction, EqualLayersNeedNoLists) {
  const ModelSpec spec = plain_spec();
  ParameterValues values = dense_parameters(spec);
  const std::vector<Unit> units = units_of(spec);
  clear_units(units, {0, 24, 48, 10, 34, 58}, values);  // a head and a neuron of each layer
  const CompactedModel compacted = compact(spec, values);
  EXPECT_FALSE(compacted.spec.has_uneven_layers());
  EXPECT_EQ(compacted.spec.heads, 3);
  EXPECT_EQ(compacted.spec.head_size, 4);
  EXPECT_EQ(compacted.spec.ffn, 19);
  expect_same_logits(spec, values, compacted);
}

TEST(Compaction, KeepsTheBiasOfASublayerThatIsGone) {
  const ModelSpec spec = plain_spec();
  ParameterValues values = dense_parameters(spec);
  const std::vector<Unit> units = units_of(spec);
  std::vector<std::size_t> places{0, 1, 2, 3};                // all heads of the first layer
  for (std::size_t i = 28; i < 48; ++i) places.push_back(i);  // the second feed-forward
  clear_units(units, places, values);
  const CompactedModel compacted = compact(spec, values);
  EXPECT_TRUE(compacted.counts[0].gone());
  EXPECT_TRUE(compacted.counts[3].gone());
  EXPECT_EQ(compacted.spec.layer_heads.front(), 1);
  EXPECT_EQ(compacted.spec.layer_ffn.at(1), 1);
  expect_same_logits(spec, values, compacted);
}

TEST(Compaction, HoldsForEveryKindOfAttention) {
  std::vector<ModelSpec> variants(5, plain_spec());
  variants[0].attention = engine::AttentionKind::normalised;
  variants[1].attention = engine::AttentionKind::linear;
  variants[2].attention = engine::AttentionKind::performer;
  variants[2].features = 8;
  variants[3].window = 3;
  variants[3].global_tokens = 1;
  variants[4].attention = engine::AttentionKind::none;
  for (const ModelSpec& spec : variants) {
    ParameterValues values = dense_parameters(spec);
    clear_units(units_of(spec), {0, 6, 25, 30}, values);
    expect_same_logits(spec, values, compact(spec, values));
  }
}

TEST(Compaction, LeavesHeadsThatAreNotSeparate) {
  ModelSpec spec = plain_spec();
  spec.attention_norm = true;
  ParameterValues values = dense_parameters(spec);
  clear_units(units_of(spec), {0, 6}, values);
  const CompactedModel compacted = compact(spec, values);
  EXPECT_TRUE(compacted.spec.layer_heads.empty());
  EXPECT_EQ(compacted.spec.layer_ffn, (std::vector<std::int64_t>{19, 20, 20}));
  expect_same_logits(spec, values, compacted);
}

TEST(UnevenLayers, HaveTheGradientsOfFiniteDifferences) {
  ModelSpec spec = plain_spec();
  spec.layer_heads = {3, 1, 4};
  spec.layer_ffn = {7, 20, 1};
  const auto model = build_transformer(spec, {});
  engine::RefExecutor executor(model->plan);
  const ParameterValues values = dense_parameters(spec);
  for (const auto& [name, list] : values) executor.write(model->plan.find(name), list);
  std::vector<std::int32_t> tokens(as_size(model->rows()));
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i * 5 % 23);
  executor.write_tokens(model->tokens, tokens);
  executor.write_tokens(model->targets, tokens);
  engine::StepScalars scalars;
  executor.run(engine::Program::train, scalars);
  constexpr double kStep = 3e-7;
  for (const Parameter& parameter : model->parameters) {
    double* value = executor.data(parameter.id) + model->plan.tensor(parameter.id).size() / 2;
    const double gradient = executor.data(
        model->plan.gradient(parameter.id))[model->plan.tensor(parameter.id).size() / 2];
    const auto loss_at = [&](double change) {
      const double before = std::exchange(*value, *value + change);
      executor.run(engine::Program::evaluate, scalars);
      *value = before;
      double sum = 0;
      for (std::int64_t row = 0; row < model->rows(); ++row) {
        sum += executor.data(model->losses)[row];
      }
      return sum;
    };
    EXPECT_NEAR(gradient, (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep),
                1e-5 * std::max(1.0, std::abs(gradient)))
        << parameter.name;
  }
}

TEST(UnevenLayers, AreChecked) {
  const auto refused = [](auto change, const std::string& text) {
    ModelSpec spec = plain_spec();
    change(spec);
    try {
      validate(spec);
      ADD_FAILURE() << text;
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  };
  refused([](ModelSpec& spec) { spec.layer_ffn = {20, 20}; }, "has 2 numbers for 3 sublayers");
  refused([](ModelSpec& spec) { spec.layer_ffn = {20, 0, 20}; }, "layer_ffn: 0 must be");
  refused(
      [](ModelSpec& spec) {
        spec.layer_heads = {4, 4, 8192};
      },
      "layer_heads: 8192 must be a multiple of 1 up to 4096");
  refused(
      [](ModelSpec& spec) {
        spec.key_heads = 2;
        spec.layer_heads = {4, 3, 4};
      },
      "layer_heads: 3 must be a multiple of 2");
}

}  // namespace
}  // namespace fathom::model
