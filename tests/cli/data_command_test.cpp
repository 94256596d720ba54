#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "run_command.h"
#include "scratch_folder.h"

namespace fathom {
namespace {

std::string paragraphs() {
  std::string text;
  for (int i = 0; i < 200; ++i) {
    text += "Paragraph " + std::to_string(i) + " speaks of depth and of width.\n\n";
  }
  return text;
}

TEST(DataCommand, PrepareInfoAndSampleAgree) {
  const ScratchFolder folder;
  const std::string corpus = folder.write("c.txt", paragraphs());
  const std::string tokens = folder / "tokens";
  const CommandResult prepared =
      run_command({"data", "prepare", corpus, "-o", tokens, "--tokenizer", "bytes", "--documents",
                   "paragraphs", "--json"});
  ASSERT_EQ(prepared.code, 0) << prepared.err;
  EXPECT_EQ(prepared.err, "");
  const auto made = nlohmann::json::parse(prepared.out);
  EXPECT_EQ(made["schema"], "fathom.data_prepare.v1");
  const CommandResult shown = run_command({"data", "info", tokens, "--json", "--verify"});
  ASSERT_EQ(shown.code, 0) << shown.err;
  const auto info = nlohmann::json::parse(shown.out);
  EXPECT_EQ(info["hash"], made["hash"]);
  EXPECT_EQ(info["splits"], made["splits"]);
  std::uint64_t documents = 0, bytes = 0;
  for (const auto& [name, split] : info["splits"].items()) {
    documents += split["documents"].get<std::uint64_t>();
    bytes += split["text_bytes"].get<std::uint64_t>();
  }
  EXPECT_EQ(documents, 200u);
  EXPECT_EQ(bytes, paragraphs().size());
  const CommandResult sampled =
      run_command({"data", "sample", tokens, "--tokens", "40", "--count", "2", "--json"});
  ASSERT_EQ(sampled.code, 0) << sampled.err;
  const auto samples = nlohmann::json::parse(sampled.out)["samples"];
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0]["ids"].size(), 40u);
  EXPECT_EQ(run_command({"data", "info", tokens}).code, 0);
  EXPECT_EQ(run_command({"data", "sample", tokens, "--pieces"}).code, 0);
}

TEST(DataCommand, ErrorsAreOneLineWithTheRightCode) {
  const ScratchFolder folder;
  const std::string corpus = folder.write("c.txt", paragraphs());
  const std::string tokens = folder / "tokens";
  struct Case {
    std::vector<std::string> arguments;
    int code;
    std::string says;
  };
  const std::vector<Case> cases{
      {{"data", "prepare", corpus}, 2, "--output"},
      {{"data", "prepare", folder / "missing", "-o", tokens}, 3, "no such file"},
      {{"data", "prepare", corpus, "-o", tokens, "--tokenizer", "bep"}, 2, "Did you mean 'bpe'"},
      {{"data", "prepare", corpus, "-o", tokens, "--vocab", "many"}, 2, "--vocab"},
      {{"data", "prepare", corpus, "-o", tokens, "--vocab", "100"}, 2, "between 320"},
      {{"data", "prepare", corpus, "-o", tokens, "--valid", "70%", "--test", "40%"}, 2, "shares"},
      {{"data", "prepare", corpus, "-o", tokens, "--vocab", "60K"}, 3, "too few for a bpe"},
      {{"data", "info", folder / "nothing"}, 3, "no prepared corpus here"},
      {{"data", "sample", folder / "nothing"}, 3, "no prepared corpus here"},
      {{"data", "prepair", corpus}, 2, "Did you mean 'prepare'"},
  };
  for (const Case& entry : cases) {
    const CommandResult result = run_command(entry.arguments);
    EXPECT_EQ(result.code, entry.code) << result.err;
    EXPECT_NE(result.err.find(entry.says), std::string::npos) << entry.says << " / " << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_EQ(result.out, "");
  }
}

TEST(DataCommand, ASmallTextNamesTheVocabularyThatWouldDo) {
  const ScratchFolder folder;
  std::string text;
  for (int i = 0; i < 400; ++i) {  // 200 words of five letters, each twice
    const int word = i % 200;
    for (const int factor : {1, 7, 11, 17, 23}) {
      text += static_cast<char>('a' + (word * factor + word / 26) % 26);
    }
    text += i % 8 == 7 ? '\n' : ' ';
  }
  const std::string corpus = folder.write("c.txt", text);
  const std::string tokens = folder / "deep" / "tokens";
  const CommandResult refused = run_command({"data", "prepare", corpus, "-o", tokens});
  EXPECT_EQ(refused.code, 3);
  EXPECT_FALSE(std::filesystem::exists(folder / "deep"));
  const std::size_t option = refused.err.find("--vocab ");
  ASSERT_NE(option, std::string::npos) << refused.err;
  const std::string number = std::to_string(std::stoi(refused.err.substr(option + 8)));
  const CommandResult taken =
      run_command({"data", "prepare", corpus, "-o", tokens, "--vocab", number});
  EXPECT_EQ(taken.code, 0) << taken.err;
  EXPECT_NE(taken.out.find("vocabulary " + number), std::string::npos) << taken.out;
}

TEST(DataCommand, ReadsJsonLines) {
  const ScratchFolder folder;
  const std::string corpus =
      folder.write("c.jsonl", "{\"id\":1,\"body\":\"first\"}\n{\"id\":2,\"body\":\"second\"}\n");
  const auto prepared = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"data",       "prepare",     corpus,  "-o",
                                       folder / "t", "--tokenizer", "bytes", "--valid",
                                       "0",          "--test",      "0",     "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_command(arguments);
  };
  const CommandResult wrong = prepared({"--documents", "jsonl"});
  EXPECT_EQ(wrong.code, 3);
  EXPECT_NE(wrong.err.find("line 1 has no text in 'text'; --text-field"), std::string::npos)
      << wrong.err;
  EXPECT_NE(wrong.err.find("(it has: body)"), std::string::npos) << wrong.err;
  const CommandResult right = prepared({"--text-field", "body"});
  ASSERT_EQ(right.code, 0) << right.err;
  const auto train = nlohmann::json::parse(right.out)["splits"]["train"];
  EXPECT_EQ(train["documents"], 2);
  EXPECT_EQ(train["text_bytes"], 11);
}

TEST(DataCommand, NamedCorpusComesFromTheEnvironmentOrSaysHowToInstall) {
  const ScratchFolder folder;
  folder.write("corpora/sotu/1.txt", paragraphs());
  folder.write("corpora/sotu/2.txt", paragraphs() + "other");
  setenv("FATHOM_CORPORA", (folder / "corpora").c_str(), 1);
  const CommandResult result =
      run_command({"data", "prepare", "sotu", "-o", folder / "t", "--tokenizer", "bytes", "--valid",
                   "0", "--test", "0", "--json"});
  unsetenv("FATHOM_CORPORA");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out)["splits"]["train"]["documents"], 2);
}

TEST(DataCommand, EmptyHeldOutSplitsAreMentioned) {
  const ScratchFolder folder;
  const std::string corpus = folder.write("c.txt", "one short text");
  const CommandResult result = run_command(
      {"data", "prepare", corpus, "-o", folder / "t", "--tokenizer", "bytes", "--seed", "1"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(
      result.err.find("no text in the valid split: 1 document, none fell into it; about 60 would"),
      std::string::npos)
      << result.err;
}

}  // namespace
}  // namespace fathom
