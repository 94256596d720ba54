// Mixtures of experts and latent attention: a hand count, and released checkpoints to the last
// parameter.
#include <gtest/gtest.h>

#include "scratch_folder.h"
#include "shape/catalogue.h"
#include "shape/flops.h"
#include "shape/hf_config.h"
#include "shape/memory.h"
#include "shape/parameters.h"

namespace fathom {
namespace {

Shape tiny_mixture() {
  ShapeRequest request = parse_depth_by_width("3x8");
  request.heads = 2;
  request.head_size = 4;
  request.ffn = 5;
  request.gated = true;
  request.vocab = 7;
  request.context = 4;
  request.tied = false;
  Shape shape = complete(request);
  shape.experts = {.routed = 4,
                   .active = 2,
                   .ffn = 6,
                   .shared_ffn = 3,
                   .dense_layers = 1,
                   .shared_gate = true,
                   .router_bias = true,
                   .expert_bias = false};
  return shape;
}

TEST(Mixtures, HandCount) {
  const ParameterCount count = count_parameters(tiny_mixture());
  EXPECT_EQ(count.attention_matrices, 3 * 4 * 8 * 8);
  // One dense layer of 5; two with four experts of 6 and a shared one of 3.
  EXPECT_EQ(count.ffn_matrices, 3 * 8 * 5 + 2 * (4 * 3 * 8 * 6 + 3 * 8 * 3));
  EXPECT_EQ(count.router, 2 * (8 * 4 + 8));
  EXPECT_EQ(count.biases, 2 * 4);
  EXPECT_EQ(count.norms, 7 * 8);
  EXPECT_EQ(count.inactive_matrices, 2 * 2 * 3 * 8 * 6);
  EXPECT_EQ(count.active(), count.total() - 2 * 2 * 3 * 8 * 6);
  EXPECT_EQ(count.total(), 2 * 56 + 768 + 1416 + 80 + 8 + 56);
}

TEST(Mixtures, FlopsAndMemoryFollowWhatATokenVisits) {
  const Shape shape = tiny_mixture();
  const ParameterCount count = count_parameters(shape);
  const double matrices = 768 + 3 * 8 * 5 + 2 * (2 * 3 * 8 * 6 + 3 * 8 * 3) + 80;
  EXPECT_EQ(static_cast<double>(count.active_matrices()), matrices);
  // Matrices, head, and causal attention over (4 + 1) / 2 positions: 4 L H K each.
  EXPECT_DOUBLE_EQ(count_flops(shape).forward_per_token,
                   2 * matrices + 2 * 7 * 8 + 4 * 3 * 8 * 2.5);
  EXPECT_DOUBLE_EQ(count_training_memory(shape, 0).total(),
                   16 * static_cast<double>(count.total()));
  // Mean feed-forward width kept: (5 + 2 (2 x 6 + 3)) / 3; the router's scores 2 x 4 in two of
  // three layers.
  EXPECT_NEAR(activation_bytes_per_token_layer(shape),
              4 * 8 + 2 * (8 + 16) + 2 * 8 + 4 * 2 + 4 * 8 + 6 * 35.0 / 3 + 8 * 2.0 / 3, 1e-9);
}

TEST(Mixtures, LatentAttentionByHand) {
  Shape shape = tiny_mixture();
  shape.experts = {};
  shape.head_size = 6;  // 4 and a rotary part of 2
  shape.latent = {.kv_rank = 5, .q_rank = 3, .rope_size = 2, .value_size = 4};
  const ParameterCount count = count_parameters(shape);
  const int query = 8 * 3 + 3 * 2 * 6;
  const int down = 8 * (5 + 2);
  const int up = 5 * 2 * (4 + 4);
  const int out = 2 * 4 * 8;
  EXPECT_EQ(count.attention_matrices, 3 * (query + down + up + out));
  EXPECT_EQ(count.norms, 7 * 8 + 3 * (5 + 3));
  EXPECT_EQ(kv_bytes_per_token(shape), 3 * (5 + 2) * 2);
}

struct PublishedMixture {
  const char* name;
  std::int64_t total;
};

// Totals of the released checkpoints, half the bytes of their bf16 safetensors; DeepSeek-V3 without
// its multi-token prediction layer, gpt-oss unpacked.
TEST(Mixtures, PublishedModelsExactToTheLastParameter) {
  for (const PublishedMixture& model : {PublishedMixture{"Mixtral-8x7B-v0.1", 46'702'792'704},
                                        {"Qwen3-30B-A3B", 30'532'122'624},
                                        {"Qwen3-235B-A22B", 235'093'634'560},
                                        {"gpt-oss-20b", 20'914'757'184},
                                        {"gpt-oss-120b", 116'829'156'672},
                                        {"DeepSeek-V2-Lite", 15'706'484'224},
                                        {"DeepSeek-V2", 235'741'434'880},
                                        {"DeepSeek-V3", 671'026'419'200},
                                        {"DeepSeekMoE-16B", 16'375'728'128}}) {
    EXPECT_EQ(count_parameters(find_published(model.name).shape).total(), model.total)
        << model.name;
  }
}

// What the makers state as active, embeddings and all, in billions.
TEST(Mixtures, ActiveParametersAreThoseTheMakersState) {
  const auto active = [](const char* name) {
    return static_cast<double>(count_parameters(find_published(name).shape).active()) / 1e9;
  };
  EXPECT_NEAR(active("Mixtral-8x7B-v0.1"), 12.9, 0.05);
  EXPECT_NEAR(active("Mixtral-8x22B-v0.1"), 39, 0.5);
  EXPECT_NEAR(active("Qwen3-30B-A3B"), 3.3, 0.1);
  EXPECT_NEAR(active("Qwen3-235B-A22B"), 22, 0.5);
  EXPECT_NEAR(active("DeepSeek-V2"), 21, 0.5);
  EXPECT_NEAR(active("DeepSeek-V3"), 37, 1);
  EXPECT_NEAR(active("Kimi-K2"), 32, 1);
  EXPECT_NEAR(active("Llama-4-Scout"), 17, 0.5);
  // The model card leaves the embedding out: 0.58 B.
  EXPECT_NEAR(active("gpt-oss-20b") - 0.579, 3.61, 0.02);
  EXPECT_NEAR(active("gpt-oss-120b") - 0.579, 5.13, 0.02);
}

TEST(Mixtures, EveryMixtureOfTheCatalogueIsCounted) {
  std::size_t rows = 0;
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.kind != "decoder MoE") continue;
    ++rows;
    EXPECT_NO_THROW(validate(entry.shape)) << entry.name;
    EXPECT_TRUE(entry.shape.mixture()) << entry.name;
    EXPECT_FALSE(entry.shape.conventions.assumed) << entry.name;
    const ParameterCount count = count_parameters(entry.shape);
    EXPECT_LT(2 * count.active(), count.total()) << entry.name;
  }
  EXPECT_EQ(rows, 12u);
}

class MixtureConfig : public testing::Test {
 protected:
  std::int64_t total_of(const std::string& text) {
    const ScratchFolder folder;
    return count_parameters(read_hf_config(folder.write("config.json", text)).shape).total();
  }
};

TEST_F(MixtureConfig, QwenAndOlmoe) {
  EXPECT_EQ(total_of(R"({"model_type":"qwen2_moe","hidden_size":2048,"num_hidden_layers":24,
      "num_attention_heads":16,"num_key_value_heads":16,"intermediate_size":5632,
      "moe_intermediate_size":1408,"shared_expert_intermediate_size":5632,"num_experts":60,
      "num_experts_per_tok":4,"decoder_sparse_step":1,"vocab_size":151936,
      "max_position_embeddings":8192,"tie_word_embeddings":false})"),
            14'315'784'192);  // Qwen1.5-MoE-A2.7B
  EXPECT_EQ(total_of(R"({"model_type":"olmoe","hidden_size":2048,"num_hidden_layers":16,
      "num_attention_heads":16,"num_key_value_heads":16,"intermediate_size":1024,"num_experts":64,
      "num_experts_per_tok":8,"vocab_size":50304,"max_position_embeddings":4096,
      "tie_word_embeddings":false})"),
            6'919'161'856);  // OLMoE-1B-7B
  EXPECT_EQ(total_of(R"({"model_type":"qwen3_moe","hidden_size":2048,"num_hidden_layers":48,
      "num_attention_heads":32,"num_key_value_heads":4,"head_dim":128,"intermediate_size":6144,
      "moe_intermediate_size":768,"num_experts":128,"num_experts_per_tok":8,
      "decoder_sparse_step":1,"mlp_only_layers":[],"vocab_size":151936,
      "max_position_embeddings":40960,"tie_word_embeddings":false})"),
            30'532'122'624);
}

TEST_F(MixtureConfig, MixtralAndDeepSeek) {
  EXPECT_EQ(total_of(R"({"model_type":"mixtral","hidden_size":6144,"num_hidden_layers":56,
      "num_attention_heads":48,"num_key_value_heads":8,"intermediate_size":16384,
      "num_local_experts":8,"num_experts_per_tok":2,"vocab_size":32000,
      "max_position_embeddings":65536,"tie_word_embeddings":false})"),
            140'620'634'112);  // Mixtral-8x22B-v0.1
  EXPECT_EQ(total_of(R"({"model_type":"deepseek_v2","hidden_size":2048,"num_hidden_layers":27,
      "num_attention_heads":16,"num_key_value_heads":16,"intermediate_size":10944,
      "moe_intermediate_size":1408,"n_routed_experts":64,"n_shared_experts":2,
      "num_experts_per_tok":6,"first_k_dense_replace":1,"kv_lora_rank":512,"q_lora_rank":null,
      "qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128,"vocab_size":102400,
      "max_position_embeddings":163840,"tie_word_embeddings":false})"),
            15'706'484'224);  // DeepSeek-V2-Lite
}

TEST_F(MixtureConfig, LanguagePartOfAWrapper) {
  EXPECT_EQ(total_of(R"({"model_type":"llama4","vision_config":{"hidden_size":1},"text_config":{
      "model_type":"llama4_text","hidden_size":5120,"num_hidden_layers":48,
      "num_attention_heads":40,"num_key_value_heads":8,"head_dim":128,"intermediate_size":8192,
      "intermediate_size_mlp":16384,"num_local_experts":16,"num_experts_per_tok":1,
      "interleave_moe_layer_step":1,"vocab_size":202048,"tie_word_embeddings":false}})"),
            count_parameters(find_published("Llama-4-Scout").shape).total());
}

}  // namespace
}  // namespace fathom
