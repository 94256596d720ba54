#include "cli/given_options.h"

#include <gtest/gtest.h>

#include "cli/parse.h"
#include "cli/plan_words.h"
#include "core/error.h"

namespace fathom {
namespace {

TEST(PlanWordsTest, GiveTheRequestAndTheOptionsAsTyped) {
  const auto words = parse_plan_words({"350M", "--vocab", "32000", "--hardware", "h100", "--total",
                                       "--kv-group", "4", "--tolerance", "1%"});
  EXPECT_EQ(words.request.parameters, 350e6);
  EXPECT_EQ(words.request.base.vocab, 32000);
  EXPECT_EQ(words.request.hardware, "h100");
  EXPECT_TRUE(words.request.count_embeddings);
  EXPECT_EQ(words.options, "--total --tolerance 1% --vocab 32000 --kv-group 4");
}

TEST(PlanWordsTest, DefaultsAreNotTyped) {
  EXPECT_EQ(parse_plan_words({"1.3B"}).options, "");
  EXPECT_EQ(parse_plan_words({"--flops", "1e21", "--tokens", "20B"}).options, "");
}

TEST(PlanWordsTest, WhatWouldWriteOrPrintIsUnknown) {
  for (const char* option : {"--html", "--output", "--emit", "--overlay", "--json", "--open"}) {
    EXPECT_THROW(parse_plan_words({"1.3B", option, "x"}), ConfigError) << option;
  }
  EXPECT_THROW(parse_plan_words({"1.3B", "--help"}), ConfigError);
  EXPECT_THROW(parse_plan_words({"1.3B", "--version"}), ConfigError);
}

TEST(PlanWordsTest, AskForTheSameAgain) {
  const auto first = parse_plan_words({"1.3B", "--untied", "--max-depth", "24", "--ffn-ratio",
                                       "3.5", "--levine-correlation", "0.1"});
  std::vector<std::string> again{"1.3B"};
  for (const std::string& word : serve::words_of(first.options)) again.push_back(word);
  const auto second = parse_plan_words(again);
  EXPECT_EQ(second.options, first.options);
  EXPECT_EQ(second.request.base.ffn_ratio, 3.5);
  EXPECT_EQ(second.request.rules.max_layers, 24);
}

}  // namespace
}  // namespace fathom
