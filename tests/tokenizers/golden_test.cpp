// Ids of the reference library for nasty strings (tools/make_tokenizer_golden.mjs).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/json_text.h"
#include "tokenizers/hf_tokenizer.h"

namespace fathom::tokenizers {
namespace {

namespace fs = std::filesystem;

class TokenizerGolden : public testing::TestWithParam<const char*> {};

TEST_P(TokenizerGolden, IdsAreThoseOfTheReferenceLibrary) {
  const fs::path folder = fs::path(FATHOM_SOURCE_DIR) / "tests/golden/tokenizers";
  const nlohmann::json strings = read_json_file(folder / "strings.json");
  const nlohmann::json golden = read_json_file(folder / (std::string(GetParam()) + ".json"));
  const auto tokenizer =
      make_hf_tokenizer(golden.at("tokenizer"), nlohmann::json::object(), GetParam());
  ASSERT_GE(strings.size(), 200u);
  for (std::size_t i = 0; i < strings.size(); ++i) {
    std::vector<data::TokenId> ids = tokenizer->text_start();
    tokenizer->encoder()->encode(strings[i].get<std::string>(), ids);
    const auto back = tokenizer->text_end();
    ids.insert(ids.end(), back.begin(), back.end());
    EXPECT_EQ(ids, golden.at("ids")[i].get<std::vector<data::TokenId>>()) << strings[i].dump();
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, TokenizerGolden,
                         testing::Values("gpt2", "roberta", "llama3", "qwen2", "smollm", "llama2",
                                         "metaspace", "gemma", "bert", "unigram"),
                         [](const auto& kind) { return std::string(kind.param); });

}  // namespace
}  // namespace fathom::tokenizers
