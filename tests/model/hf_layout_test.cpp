// Export and import of Hugging Face layouts: the functions are the same, only the names differ.
#include "model/hf_layout.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>

#include "core/error.h"
#include "core/safetensors.h"
#include "engine/ref/ref_executor.h"
#include "model/transformer.h"
#include "scratch_folder.h"

namespace fathom::model {
namespace {

namespace fs = std::filesystem;

ModelSpec gpt2_spec() {
  ModelSpec spec;
  spec.width = 16;
  spec.vocab = 23;
  spec.context = 12;
  spec.activation = FeedForward::gelu_tanh;
  return spec;
}

ModelSpec llama_spec() {
  ModelSpec spec;
  spec.width = 16;
  spec.heads = 4;
  spec.key_heads = 2;
  spec.head_size = 6;
  spec.ffn = 20;
  spec.vocab = 23;
  spec.context = 12;
  spec.tied = false;
  spec.biases = false;
  spec.norm_kind = engine::NormKind::rms;
  spec.activation = FeedForward::swiglu;
  spec.positions = Positions::rotary;
  return spec;
}

ParameterValues random_parameters(const ModelSpec& spec) {
  const auto model = build_transformer(spec, {});
  ParameterValues values;
  for (const Parameter& parameter : model->parameters) {
    std::vector<float> v = initial_values(*model, parameter, 5);
    for (std::size_t i = 0; i < v.size(); ++i) {
      v[i] = 8 * v[i] + 0.1f * std::sin(static_cast<float>(i + parameter.name.size()));
    }
    values[parameter.name] = v;
  }
  return values;
}

std::vector<float> logits_of(const ModelSpec& spec, const ParameterValues& values) {
  BuildOptions options;
  options.purpose = Purpose::logits;
  const auto model = build_transformer(spec, options);
  engine::RefExecutor executor(model->plan);
  for (const Parameter& parameter : model->parameters) {
    executor.write(parameter.id, values.at(parameter.name));
  }
  executor.run(engine::Program::refresh, {});
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(model->rows()));
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i * 5 % 23);
  executor.write_tokens(model->tokens, tokens);
  executor.run(engine::Program::evaluate, {});
  std::vector<float> logits(tokens.size() * 23);
  executor.read(model->logits, logits);
  return logits;
}

class HfLayout : public testing::Test {
 protected:
  ScratchFolder scratch_;
  fs::path folder_ = scratch_ / "model";
};

void expect_same_function(const ModelSpec& spec, HfFormat format, const fs::path& folder) {
  const ParameterValues values = random_parameters(spec);
  export_hf(spec, values, format, folder);
  const ImportedModel back = import_hf(folder);
  EXPECT_EQ(back.format, format);
  const std::vector<float> before = logits_of(spec, values);
  const std::vector<float> after = logits_of(back.spec, back.parameters);
  double largest = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_NEAR(before[i], after[i], 2e-5) << i;
    largest = std::max(largest, static_cast<double>(std::fabs(before[i])));
  }
  EXPECT_GT(largest, 0.05);  // the comparison says something
}

TEST_F(HfLayout, Gpt2RoundTripComputesTheSameLogits) {
  expect_same_function(gpt2_spec(), HfFormat::gpt2, folder_);
}

TEST_F(HfLayout, LlamaRoundTripComputesTheSameLogits) {
  expect_same_function(llama_spec(), HfFormat::llama, folder_);
}

// CompleteP's attention scale, branch factor and head factor have no key in config.json.
TEST_F(HfLayout, MultipliersAreFoldedIntoWeights) {
  for (const auto format : {HfFormat::gpt2, HfFormat::llama}) {
    ModelSpec spec = format == HfFormat::gpt2 ? gpt2_spec() : llama_spec();
    spec.parametrisation = Parametrisation::completep;
    spec.base_width = 4;
    spec.base_layers = 1;
    expect_same_function(spec, format, folder_);
  }
}

TEST_F(HfLayout, NamesAndShapesAreTheLayoutsOwn) {
  export_hf(gpt2_spec(), random_parameters(gpt2_spec()), HfFormat::gpt2, folder_);
  const SafetensorsFile file(folder_ / "model.safetensors");
  const TensorView* attention = file.find("transformer.h.1.attn.c_attn.weight");
  ASSERT_NE(attention, nullptr);
  EXPECT_EQ(attention->shape, (std::vector<std::uint64_t>{16, 48}));
  EXPECT_EQ(file.find("lm_head.weight"), nullptr);  // tied
  EXPECT_EQ(file.tensors().size(), 2u + 2 * 12 + 2);
}

TEST_F(HfLayout, WhatALayoutCannotSayIsRefused) {
  const auto refused = [&](auto change, HfFormat format) {
    ModelSpec spec = format == HfFormat::gpt2 ? gpt2_spec() : llama_spec();
    change(spec);
    EXPECT_THROW(check_expressible(spec, format), ConfigError);
  };
  refused([](ModelSpec& s) { s.norm = NormPlace::post; }, HfFormat::gpt2);
  refused([](ModelSpec& s) { s.biases = false; }, HfFormat::gpt2);
  refused([](ModelSpec& s) { s.window = 4; }, HfFormat::gpt2);
  refused([](ModelSpec& s) { s.stride = 4; }, HfFormat::gpt2);
  refused([](ModelSpec& s) { s.own_block = true; }, HfFormat::llama);
  refused([](ModelSpec& s) { s.attention = engine::AttentionKind::linear; }, HfFormat::gpt2);
  refused([](ModelSpec& s) { s.attention = engine::AttentionKind::normalised; }, HfFormat::gpt2);
  refused([](ModelSpec& s) { s.keys = KeySource::smeared; }, HfFormat::gpt2);
  refused([](ModelSpec& s) { s.keys = KeySource::synthesised; }, HfFormat::llama);
  refused([](ModelSpec& s) { s.attention_norm = true; }, HfFormat::llama);
  refused([](ModelSpec& s) { s.slice = 8; }, HfFormat::gpt2);
  refused([](ModelSpec& s) { s.order = "ssff"; }, HfFormat::gpt2);
  refused([](ModelSpec& s) { s.head_size = 4; }, HfFormat::gpt2);
  refused([](ModelSpec& s) { s.positions = Positions::learned; }, HfFormat::llama);
  refused([](ModelSpec& s) { s.embedding_rank = 4; }, HfFormat::llama);
  EXPECT_NO_THROW(check_expressible(llama_spec(), HfFormat::llama));
  EXPECT_THROW(parse_enum<HfFormat>("hf-lama", "format"), ConfigError);
}

/// Every row of the table in docs/attention.md: one line that names the key which has no layout.
TEST_F(HfLayout, NamesTheVariantThatHasNoLayout) {
  struct Variant {
    std::function<void(ModelSpec&)> change;
    std::string named;  // empty: it is written
  };
  using engine::AttentionKind;
  const auto keys = [](KeySource source) {
    return [=](ModelSpec& s) {
      s.keys = source;
      if (source == KeySource::projected) s.projected_length = 4;
      if (source == KeySource::sorted) s.block_size = 4;
      if (source == KeySource::projected || source == KeySource::sorted) {
        s.mask = engine::MaskKind::bidirectional;
      }
    };
  };
  const auto kind = [](AttentionKind attention) {
    return [=](ModelSpec& s) {
      s.attention = attention;
      s.features = attention == AttentionKind::performer ? 8 : 0;
    };
  };
  const Variant variants[] = {
      {[](ModelSpec&) {}, ""},
      {[](ModelSpec& s) { s.window = 4; }, "window = 4"},
      {[](ModelSpec& s) { s.own_block = true; }, "a pattern of keys"},
      {[](ModelSpec& s) { s.window = s.stride = 4; }, "a pattern of keys"},
      {[](ModelSpec& s) { s.window = 4, s.global_tokens = 1; }, "a pattern of keys"},
      {[](ModelSpec& s) { s.window = 4, s.random_blocks = 2; }, "a pattern of keys"},
      {kind(AttentionKind::linear), "attention = \"linear\""},
      {kind(AttentionKind::performer), "attention = \"performer\""},
      {keys(KeySource::projected), "keys = \"projected\""},
      {keys(KeySource::sorted), "keys = \"sorted\""},
      {keys(KeySource::synthesised), "keys = \"synthesised\""},
      {keys(KeySource::smeared), "keys = \"smeared\""},
      {kind(AttentionKind::normalised), "attention = \"normalised\""},
      {kind(AttentionKind::none), "attention = \"none\""},
      {[](ModelSpec& s) { s.attention_norm = true; }, "attention_norm"},
      {[](ModelSpec& s) { s.mask = engine::MaskKind::strict; }, "mask = \"strict\""},
      {[](ModelSpec& s) { s.slice = 8; }, "slice"},
      {[](ModelSpec& s) {
         s.layer_heads = {2, 1};
       },
       "layer_heads"},
      {[](ModelSpec& s) {
         s.layer_ffn = {64, 3};
       },
       "layer_ffn"}};
  for (const Variant& variant : variants) {
    ModelSpec spec = gpt2_spec();
    variant.change(spec);
    validate(spec);
    std::string message;
    try {
      check_expressible(spec, HfFormat::gpt2);
    } catch (const ConfigError& error) {
      message = error.what();
    }
    if (variant.named.empty()) {
      EXPECT_EQ(message, "");
    } else {
      EXPECT_EQ(message.find("hf-gpt2 cannot express " + variant.named), 0u) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos);
    }
  }
}

/// 2^24 rows of 64 would be 4 GB; the tensor in the file is small.
TEST_F(HfLayout, AConfigCannotAskForMoreMemoryThanItsTensorsHave) {
  export_hf(gpt2_spec(), random_parameters(gpt2_spec()), HfFormat::gpt2, folder_);
  std::ofstream(folder_ / "config.json")
      << R"({"model_type":"gpt2","n_embd":64,"n_head":2,"n_layer":2,"n_positions":12,)"
      << R"("vocab_size":16777216})";
  const pid_t child = fork();
  if (child == 0) {
    try {
      import_hf(folder_);
    } catch (const DataError&) {
      _exit(3);
    }
    _exit(0);
  }
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  EXPECT_EQ(WEXITSTATUS(status), 3);
  EXPECT_LT(usage.ru_maxrss, 1'000'000);  // KiB
}

TEST_F(HfLayout, BrokenFoldersGetOneLine) {
  EXPECT_THROW(import_hf(folder_ / "missing"), DataError);
  export_hf(gpt2_spec(), random_parameters(gpt2_spec()), HfFormat::gpt2, folder_);
  const auto config = [&](const std::string& text) {
    std::ofstream(folder_ / "config.json") << text;
  };
  const auto message = [&] {
    try {
      import_hf(folder_);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  config(
      R"({"model_type":"gpt2","n_embd":16,"n_head":2,"n_layer":2,"n_positions":12,"vocab_size":24})");
  EXPECT_NE(
      message().find("transformer.wte.weight has shape [23, 16], config.json asks for [24, 16]"),
      std::string::npos)
      << message();
  config(
      R"({"model_type":"gpt2","n_embd":16,"n_head":2,"n_layer":3,"n_positions":12,"vocab_size":23})");
  EXPECT_NE(message().find("transformer.h.2"), std::string::npos) << message();
  config(R"({"model_type":"bloom","n_embd":16,"n_head":2,"n_layer":3,"vocab_size":23})");
  EXPECT_NE(message().find("not imported"), std::string::npos) << message();
  fs::remove(folder_ / "model.safetensors");
  config(
      R"({"model_type":"gpt2","n_embd":16,"n_head":2,"n_layer":2,"n_positions":12,"vocab_size":23})");
  EXPECT_NE(message(), "no error");
}

}  // namespace
}  // namespace fathom::model
