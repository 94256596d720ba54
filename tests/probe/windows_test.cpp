// Windows of a text: what is asked at which places, and what is wrong with a text that has none.
#include "probe/windows.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "scratch_folder.h"
#include "tokenizers/hf_tokenizer.h"

namespace fathom::probe {
namespace {

constexpr TokenId kUnknown = 0, kStart = 1, kEnd = 2, kMask = 3;

/// Words a, b, c, ... of one letter between [CLS] and [SEP].
std::unique_ptr<data::Tokenizer> letters(bool with_mask) {
  nlohmann::json vocab{{"[UNK]", kUnknown}, {"[CLS]", kStart}, {"[SEP]", kEnd}};
  for (char c = 'a'; c <= 'z'; ++c) vocab[std::string(1, c)] = 10 + c - 'a';
  nlohmann::json added = nlohmann::json::array();
  if (with_mask) {
    vocab["[MASK]"] = kMask;
    added.push_back({{"content", "[MASK]"}, {"id", kMask}, {"special", true}});
  }
  return tokenizers::make_hf_tokenizer(
      {{"added_tokens", added},
       {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
       {"post_processor",
        {{"type", "BertProcessing"}, {"sep", {"[SEP]", kEnd}}, {"cls", {"[CLS]", kStart}}}},
       {"model", {{"type", "WordPiece"}, {"vocab", vocab}}}},
      nlohmann::json::object(), "letters");
}

TextRequest request_for(const std::filesystem::path& text, Task task) {
  TextRequest request;
  request.text = text.string();
  request.window = 22;
  request.task = task;
  return request;
}

std::string alphabet(int times) {
  std::string text;
  for (int i = 0; i < times * 26; ++i)
    text += std::string(1, static_cast<char>('a' + i % 26)) + " ";
  return text;
}

TEST(Windows, EncodersAreAskedForTheSameMaskedTokensEveryTime) {
  const ScratchFolder folder;
  const auto tokenizer = letters(true);
  const TextRequest request =
      request_for(folder.write("text.txt", alphabet(4)), Task::masked_token);
  const ProbeText text = read_probe_text(request, tokenizer.get(), "");
  ASSERT_EQ(text.windows.size(), 5u);  // 104 letters in stretches of 20
  std::set<std::vector<std::size_t>> seen;
  for (const Window& window : text.windows) {
    ASSERT_EQ(window.inputs.size(), 22u);
    EXPECT_EQ(window.inputs.front(), kStart);
    EXPECT_EQ(window.inputs.back(), kEnd);
    EXPECT_EQ(window.target_count(), 3);  // 15 % of 20
    std::vector<std::size_t> places;
    for (std::size_t t = 0; t < window.inputs.size(); ++t) {
      EXPECT_EQ(window.targets[t] >= 0, window.inputs[t] == kMask);
      if (window.targets[t] < 0) continue;
      places.push_back(t);
      // The letter that the one before it asks for.
      const std::size_t other = window.inputs[t - 1] >= 10 ? t - 1 : t + 1;
      if (window.inputs[other] < 10) continue;
      const int step = other < t ? 1 : -1;
      EXPECT_EQ(window.targets[t] - 10, (window.inputs[other] - 10 + step + 26) % 26);
    }
    seen.insert(places);
  }
  EXPECT_GT(seen.size(), 2u);  // not the same places in every window
  const ProbeText again = read_probe_text(request, tokenizer.get(), "");
  for (std::size_t w = 0; w < text.windows.size(); ++w) {
    EXPECT_EQ(again.windows[w].inputs, text.windows[w].inputs);
  }
}

std::string said(const TextRequest& request, const data::Tokenizer& tokenizer) {
  try {
    read_probe_text(request, &tokenizer, "");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Windows, TextsThatCannotBeUsedSayWhy) {
  const ScratchFolder folder;
  const auto tokenizer = letters(true);
  const auto empty = folder.write("empty.txt", ""), blank = folder.write("blank.txt", " \n \n");
  for (const auto& path : {empty, blank}) {
    EXPECT_NE(said(request_for(path, Task::next_token), *tokenizer).find("holds no text"),
              std::string::npos);
  }
  const auto little = folder.write("little.txt", "a b c");
  EXPECT_NE(said(request_for(little, Task::next_token), *tokenizer)
                .find("3 tokens are fewer than one window of 22"),
            std::string::npos);
  const auto text = folder.write("text.txt", alphabet(4));
  EXPECT_NE(said(request_for(text, Task::masked_token), *letters(false)).find("no mask token"),
            std::string::npos);
  TextRequest ids = request_for("", Task::masked_token);
  ids.ids = folder.write("ids.txt", "1 2 3\n").string();
  EXPECT_NE(said(ids, *tokenizer).find("--ids needs --targets"), std::string::npos);
  ids.task = Task::next_token;
  EXPECT_EQ(said(ids, *tokenizer), "");
  folder.write("ids.txt", "1 two 3\n");
  EXPECT_NE(said(ids, *tokenizer).find("line 1: not a list of whole numbers"), std::string::npos);
  folder.write("ids.txt", "\n\n");
  EXPECT_NE(said(ids, *tokenizer).find("holds no ids"), std::string::npos);
}

}  // namespace
}  // namespace fathom::probe
