// SentencePiece models trained with that library's default flags: a blank before the text, runs of
// blanks made one, NFKC; unigram and BPE.
#include <gtest/gtest.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <fstream>

#include "core/error.h"
#include "data/sample_text.h"
#include "data/tokenizer.h"
#include "scratch_folder.h"

namespace fathom::data {
namespace {

std::string train_default(const ScratchFolder& folder, const std::string& flags) {
  std::string lines;
  for (int i = 0; i < 40; ++i) lines += sample_text(30, 100 + i) + "\n";
  const auto corpus = folder.write("corpus.txt", lines);
  const auto prefix = (folder / "model").string();
  const auto status = sentencepiece::SentencePieceTrainer::Train(
      "--input=" + corpus.string() + " --model_prefix=" + prefix +
      " --minloglevel=2 --num_threads=1 --hard_vocab_limit=false " + flags);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return prefix + ".model";
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ForeignTokenizer : public testing::TestWithParam<std::string> {};

TEST_P(ForeignTokenizer, EncodesAndDecodesAsSentencePieceDoes) {
  const ScratchFolder folder;
  const std::string path = train_default(folder, GetParam());
  sentencepiece::SentencePieceProcessor processor;
  ASSERT_TRUE(processor.Load(path).ok());
  EXPECT_THROW(make_bpe_tokenizer(contents(path), path), DataError);
  const auto tokenizer = make_sentencepiece_tokenizer(contents(path), path);
  EXPECT_EQ(tokenizer->kind(), "sentencepiece");
  EXPECT_EQ(tokenizer->vocabulary(), static_cast<std::uint64_t>(processor.GetPieceSize()));
  const std::vector<std::string> texts = {
      "", "a word", "  two  blanks ", "\xEF\xAC\x81n", "line\nend", sample_text(20, 3)};
  for (const std::string& text : texts) {
    const std::vector<int> expected = processor.EncodeAsIds(text);
    const auto ids = tokenizer->encode(text);
    EXPECT_EQ(std::vector<int>(ids.begin(), ids.end()), expected) << text;
    EXPECT_EQ(tokenizer->decode(ids), processor.DecodeIds(expected)) << text;
  }
  // The blank before a text is in the first piece and not in the text that comes back.
  const auto ids = tokenizer->encode("word");
  EXPECT_EQ(tokenizer->bytes_of(ids.front()).front(), ' ');
  EXPECT_EQ(tokenizer->decode(ids), "word");
}

TEST_P(ForeignTokenizer, ComesBackFromDisk) {
  const ScratchFolder folder;
  const std::string path = train_default(folder, GetParam());
  const auto tokenizer = make_sentencepiece_tokenizer(contents(path), path);
  std::filesystem::create_directories(folder / "saved");
  tokenizer->save(folder / "saved");
  const auto again = load_tokenizer(folder / "saved");
  EXPECT_EQ(again->kind(), "sentencepiece");
  EXPECT_EQ(again->hash(), tokenizer->hash());
  EXPECT_EQ(again->encode("some words"), tokenizer->encode("some words"));
}

TEST_P(ForeignTokenizer, RefusesWhatItCannotExpress) {
  const ScratchFolder folder;
  const std::string path = train_default(folder, GetParam());
  const auto tokenizer = make_sentencepiece_tokenizer(contents(path), path);
  EXPECT_THROW(tokenizer->encode("\xFF"), DataError);
  EXPECT_THROW(tokenizer->decode(std::vector<TokenId>{1 << 20}), InternalError);
  EXPECT_THROW(make_foreign_tokenizer("nonsense", "x"), DataError);
  const std::string without = train_default(folder, GetParam() + " --eos_id=-1");
  EXPECT_THROW(make_sentencepiece_tokenizer(contents(without), without), DataError);
}

INSTANTIATE_TEST_SUITE_P(Flags, ForeignTokenizer,
                         testing::Values("--vocab_size=120",
                                         "--model_type=bpe --vocab_size=400 --byte_fallback=true"),
                         [](const auto& test) { return test.index == 0 ? "unigram" : "bpe"; });

}  // namespace
}  // namespace fathom::data
