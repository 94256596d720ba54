#include "data/tokenizer.h"

#include <gtest/gtest.h>
#include <sentencepiece_processor.h>

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "data/tokenizer_training.h"
#include "sample_text.h"
#include "scratch_folder.h"

namespace fathom::data {
namespace {

std::string every_text() {
  std::string all = sample_text(20000, 3);
  for (const std::string& text : nasty_texts()) all += text + "\n";
  return all;
}

std::unique_ptr<Tokenizer> trained(const std::string& kind, const std::string& text,
                                   std::uint64_t vocabulary = 400) {
  TokenizerTrainer trainer({kind, vocabulary});
  Piece piece;
  piece.text = text;
  piece.origin = "sample";
  trainer.look(piece, Split::train);
  return trainer.build();
}

class EveryTokenizer : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryTokenizer, GivesNastyTextBackByteForByte) {
  const auto tokenizer = trained(GetParam(), every_text());
  for (const std::string& text : nasty_texts()) {
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
  const std::string all = every_text();
  const std::vector<TokenId> ids = tokenizer->encode(all);
  EXPECT_EQ(tokenizer->decode(ids), all);
  const std::vector<std::uint32_t> lengths = tokenizer->token_bytes();
  EXPECT_EQ(std::accumulate(ids.begin(), ids.end(), std::size_t{0},
                            [&](std::size_t sum, TokenId id) { return sum + lengths.at(id); }),
            all.size());
  EXPECT_EQ(tokenizer->bytes_of(tokenizer->end_of_document()), "");
  EXPECT_EQ(std::ranges::count(ids, tokenizer->end_of_document()), 0);
}

TEST_P(EveryTokenizer, OneGiantLineComesBack) {
  std::string line = sample_text(60000, 5);
  std::ranges::replace(line, '\n', ' ');
  line += std::string(100000, 'a') + std::string(50000, ' ');
  const auto tokenizer = trained(GetParam(), every_text());
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(line)), line);
}

TEST_P(EveryTokenizer, SavesAndLoadsTheSameTokenizer) {
  const ScratchFolder folder;
  const auto tokenizer = trained(GetParam(), every_text());
  tokenizer->save(folder.path());
  const auto loaded = load_tokenizer(folder.path());
  EXPECT_EQ(loaded->kind(), GetParam());
  EXPECT_EQ(loaded->hash(), tokenizer->hash());
  EXPECT_EQ(loaded->vocabulary(), tokenizer->vocabulary());
  EXPECT_EQ(loaded->encode(every_text()), tokenizer->encode(every_text()));
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryTokenizer, ::testing::Values("bytes", "chars", "bpe"));

TEST(ByteTokenizer, TakesAnyBytes) {
  const auto tokenizer = make_byte_tokenizer();
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(tokenizer->vocabulary(), 257u);
  EXPECT_EQ(tokenizer->end_of_document(), 256);
  EXPECT_EQ(tokenizer->encode("A\xff"), (std::vector<TokenId>{65, 255}));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(all)), all);
}

TEST(CharTokenizer, NumbersCharactersByCodePoint) {
  const auto tokenizer = trained("chars", "cab \u00e9");
  EXPECT_EQ(tokenizer->vocabulary(), 6u);  // blank a b c é, end
  EXPECT_EQ(tokenizer->encode("abc \u00e9"), (std::vector<TokenId>{1, 2, 3, 0, 4}));
  EXPECT_EQ(error_of<DataError>([&] { tokenizer->encode("abx"); }),
            "byte 2: the character U+0078 is not in the tokenizer's alphabet");
}

TEST(BpeTokenizer, EqualsSentencePieceOnWholeLines) {
  const ScratchFolder folder;
  const auto tokenizer = trained("bpe", every_text());
  tokenizer->save(folder.path());
  sentencepiece::SentencePieceProcessor reference;
  ASSERT_TRUE(reference.Load((folder / "tokenizer.model").string()).ok());
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::string text = sample_text(300, 100 + seed) + "unseen w\u00f6rds  \t caf\u00e9 12345";
    std::ranges::replace(text, '\n', ';');
    const std::vector<int> expected = reference.EncodeAsIds(text);
    EXPECT_EQ(tokenizer->encode(text), expected);
  }
}

TEST(BpeTokenizer, LearnsWordsAndKeepsTheVocabularyAskedFor) {
  const auto tokenizer = trained("bpe", every_text(), 512);
  EXPECT_EQ(tokenizer->vocabulary(), 512u);
  const std::string text = sample_text(1000, 9);
  const double bytes_per_token =
      static_cast<double>(text.size()) / static_cast<double>(tokenizer->encode(text).size());
  EXPECT_GT(bytes_per_token, 3.0);  // words of five letters and a blank, most of them one piece
  EXPECT_EQ(trained("bpe", every_text(), 512)->hash(), tokenizer->hash());
}

TEST(BpeTokenizer, ManyRareCharactersFallBackToBytes) {
  std::string text = sample_text(20000, 3);
  for (std::uint32_t c = 0x4E00; c < 0x5A00; ++c) {
    text += static_cast<char>(0xE0 | c >> 12);
    text += static_cast<char>(0x80 | (c >> 6 & 63));
    text += static_cast<char>(0x80 | (c & 63));
  }
  const auto tokenizer = trained("bpe", text, 400);
  EXPECT_EQ(tokenizer->vocabulary(), 400u);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
}

TEST(Tokenizers, RefuseWhatTheyCannotDo) {
  const std::string bad = "ab\xff";
  for (const char* kind : {"chars", "bpe"}) {
    EXPECT_EQ(error_of<DataError>([&] { trained(kind, bad); }),
              "sample: byte 2: not valid UTF-8; the bytes tokenizer takes any bytes");
    const auto tokenizer = trained(kind, every_text());
    EXPECT_EQ(error_of<DataError>([&] { tokenizer->encode(bad); }),
              "byte 2: not valid UTF-8; the bytes tokenizer takes any bytes");
  }
  EXPECT_THROW(trained("bpe", every_text(), 319), ConfigError);
  EXPECT_THROW(trained("bpe", every_text(), 65537), ConfigError);
  EXPECT_THROW(trained("word", every_text()), ConfigError);
  for (const char* text :
       {"", "\n\n\n", "a", "abc abc", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}) {
    const std::string error = error_of<DataError>([&] { trained("bpe", text, 5000); });
    EXPECT_NE(error.find("vocabulary"), std::string::npos) << text << ": " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
  EXPECT_NE(
      error_of<DataError>([&] { trained("bpe", every_text(), 60000); }).find("too few for a bpe"),
      std::string::npos);
}

TEST(Tokenizers, MalformedFilesAreOneDataErrorEach) {
  const ScratchFolder folder;
  trained("bpe", every_text())->save(folder.path());
  const std::string model = file_bytes(folder / "tokenizer.model");
  folder.write("tokenizer.model", model.substr(0, model.size() / 2));
  EXPECT_NE(error_of<DataError>([&] { load_tokenizer(folder.path()); }).find("hash differs"),
            std::string::npos);
  EXPECT_THROW(make_bpe_tokenizer("nonsense", "x"), DataError);
  EXPECT_THROW(make_bpe_tokenizer("", "x"), DataError);
  for (const char* json :
       {"", "{", "[]", "{}", R"({"schema":"fathom.tokenizer.v2","kind":"bytes"})",
        R"({"schema":"fathom.tokenizer.v1","kind":"words"})",
        R"({"schema":"fathom.tokenizer.v1","kind":7})",
        R"({"schema":"fathom.tokenizer.v1","kind":"chars"})",
        R"({"schema":"fathom.tokenizer.v1","kind":"chars","alphabet":"ba"})",
        R"({"schema":"fathom.tokenizer.v1","kind":"chars","alphabet":"aa"})",
        R"({"schema":"fathom.tokenizer.v1","kind":"bpe"})"}) {
    folder.write("tokenizer.json", json);
    EXPECT_NE(error_of<DataError>([&] { load_tokenizer(folder.path()); }), "") << json;
  }
  std::filesystem::remove(folder / "tokenizer.json");
  EXPECT_THROW(load_tokenizer(folder.path()), DataError);
}

}  // namespace
}  // namespace fathom::data
