// Tokenizers of tokenizer.json and of other models' files: ids worked out by hand.
#include "tokenizers/hf_tokenizer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "scratch_folder.h"
#include "tokenizers/pattern.h"
#include "tokenizers/sentencepiece_model.h"
#include "tokenizers/steps.h"
#include "tokenizers/unicode.h"

namespace fathom::tokenizers {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<data::TokenId>;

std::vector<std::string> cut(const Json& spec, const std::string& text) {
  std::vector<Piece> pieces{{text, true}};
  make_pre_tokeniser(spec, "test")(pieces);
  std::vector<std::string> texts;
  for (const Piece& piece : pieces) texts.push_back(piece.text);
  return texts;
}

using Texts = std::vector<std::string>;

TEST(PreTokenisers, CutAsTheirKindsSay) {
  EXPECT_EQ(cut({{"type", "ByteLevel"}, {"add_prefix_space", false}}, "I'll go  home 12!"),
            (Texts{"I", "'ll", "Ġgo", "Ġ", "Ġhome", "Ġ12", "!"}));
  EXPECT_EQ(cut({{"type", "ByteLevel"}, {"add_prefix_space", true}}, "é"), (Texts{"ĠÃ©"}));
  EXPECT_EQ(cut({{"type", "Digits"}, {"individual_digits", true}}, "a12b"),
            (Texts{"a", "1", "2", "b"}));
  EXPECT_EQ(cut({{"type", "Digits"}, {"individual_digits", false}}, "a12b"),
            (Texts{"a", "12", "b"}));
  EXPECT_EQ(cut({{"type", "BertPreTokenizer"}}, "Hey, you  there!"),
            (Texts{"Hey", ",", "you", "there", "!"}));
  EXPECT_EQ(cut({{"type", "Metaspace"}, {"prepend_scheme", "first"}, {"split", true}}, "a b  c"),
            (Texts{"▁a", "▁b", "▁", "▁c"}));
  EXPECT_EQ(cut({{"type", "Metaspace"}, {"prepend_scheme", "never"}, {"split", false}}, "a b"),
            (Texts{"a▁b"}));
  EXPECT_EQ(cut({{"type", "Whitespace"}}, "a_b c!?"), (Texts{"a_b", "c", "!?"}));
  const auto split = [](const char* behavior, const std::string& text) {
    return cut({{"type", "Split"}, {"pattern", {{"String", "-"}}}, {"behavior", behavior}}, text);
  };
  EXPECT_EQ(split("Removed", "a-b--c"), (Texts{"a", "b", "c"}));
  EXPECT_EQ(split("Isolated", "a-b--c"), (Texts{"a", "-", "b", "-", "-", "c"}));
  EXPECT_EQ(split("MergedWithPrevious", "a-b--c"), (Texts{"a-", "b-", "-", "c"}));
  EXPECT_EQ(split("MergedWithNext", "a-b--c"), (Texts{"a", "-b", "-", "-c"}));
  EXPECT_EQ(split("Contiguous", "a-b--c"), (Texts{"a", "-", "b", "--", "c"}));
  EXPECT_THROW(make_pre_tokeniser({{"type", "Magic"}}, "test"), DataError);
}

TEST(Normalisers, RewriteAsTheirKindsSay) {
  const auto run = [](const Json& spec, const std::string& text) {
    return make_normaliser(spec, "test")(text);
  };
  EXPECT_EQ(run({{"type", "NFC"}}, "e\xCC\x81"), "é");
  EXPECT_EQ(run({{"type", "NFD"}}, "é"), "e\xCC\x81");
  EXPECT_EQ(run({{"type", "NFKC"}}, "ﬁ①"), "fi1");
  EXPECT_EQ(run({{"type", "Lowercase"}}, "ÀŒΣ"), "àœσ");
  EXPECT_EQ(run({{"type", "BertNormalizer"}}, "Ünï\tx 中\x01"), "uni x  中 ");
  EXPECT_EQ(run({{"type", "BertNormalizer"}, {"lowercase", false}}, "Ün"), "Ün");
  EXPECT_EQ(run({{"type", "Prepend"}, {"prepend", "▁"}}, "a"), "▁a");
  EXPECT_EQ(run({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "▁"}}, "a b"),
            "a▁b");
  EXPECT_EQ(run({{"type", "Strip"}}, " a b "), "a b");
  EXPECT_EQ(
      run({{"type", "Sequence"}, {"normalizers", {{{"type", "NFD"}}, {{"type", "StripAccents"}}}}},
          "éa"),
      "ea");
}

Json byte_level() {
  return {{"added_tokens",
           {{{"id", 9}, {"content", "<end>"}, {"special", true}},
            {{"id", 10}, {"content", "<mark>"}, {"special", false}, {"lstrip", true}}}},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
          {"post_processor",
           {{"type", "TemplateProcessing"},
            {"single", {{{"SpecialToken", {{"id", "<end>"}}}}, {{"Sequence", {{"id", "A"}}}}}},
            {"special_tokens", {{"<end>", {{"ids", {9}}}}}}}},
          {"model",
           {{"type", "BPE"},
            {"vocab",
             {{"a", 0}, {"b", 1}, {"Ġ", 2}, {"ab", 3}, {"Ġab", 4}, {"aba", 5}, {"Ã", 6}, {"©", 7}}},
            {"merges", {"a b", "Ġ ab", "ab a"}}}}};
}

TEST(HfTokenizer, BytePairsMergeByRankFromTheLeft) {
  const auto t = make_hf_tokenizer(byte_level(), Json::object(), "test");
  EXPECT_EQ(t->encode("abab"), (Ids{3, 3}));
  EXPECT_EQ(t->encode("aba"), (Ids{5}));
  EXPECT_EQ(t->encode(" ab"), (Ids{4}));
  EXPECT_EQ(t->encode("é"), (Ids{6, 7}));
  EXPECT_EQ(t->encode("a<end>b"), (Ids{0, 9, 1}));
  EXPECT_EQ(t->encode("a  <mark>b"), (Ids{0, 10, 1}));
  EXPECT_EQ(t->text_start(), (Ids{9}));
  EXPECT_EQ(t->end_of_document(), 0);
  EXPECT_EQ(t->decode(Ids{4, 6, 7, 9}), " abé");
}

TEST(HfTokenizer, BytesStandInForUnknownCharacters) {
  Json vocab{{"<unk>", 0}, {"▁", 1}, {"a", 2}, {"▁a", 3}};
  for (int byte = 0; byte < 256; ++byte) vocab[fmt::format("<0x{:02X}>", byte)] = 4 + byte;
  const Json spec{{"normalizer",
                   {{"type", "Sequence"},
                    {"normalizers",
                     {{{"type", "Prepend"}, {"prepend", "▁"}},
                      {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "▁"}}}}}},
                  {"pre_tokenizer", nullptr},
                  {"model",
                   {{"type", "BPE"},
                    {"vocab", vocab},
                    {"merges", Json::array({Json::array({"▁", "a"})})},
                    {"unk_token", "<unk>"},
                    {"fuse_unk", true},
                    {"byte_fallback", true}}}};
  const auto t = make_hf_tokenizer(spec, Json::object(), "test");
  EXPECT_EQ(t->encode("a é"), (Ids{3, 1, 4 + 0xC3, 4 + 0xA9}));
  EXPECT_EQ(t->decode(Ids{3, 1, 4 + 0xC3, 4 + 0xA9}), " a é");
}

TEST(HfTokenizer, WordPieceTakesTheLongestBeginning) {
  const ScratchFolder folder;
  folder.write("vocab.txt",
               "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\n##a\nwant\n,\n");
  const auto t = load_hf_tokenizer(folder.path());
  EXPECT_EQ(t->encode("Unaffable, want xyz"), (Ids{5, 6, 7, 10, 9, 1}));
  EXPECT_EQ(t->text_start(), (Ids{2}));
  EXPECT_EQ(t->text_end(), (Ids{3}));
  EXPECT_EQ(t->encode("[MASK]"), (Ids{4}));
}

TEST(HfTokenizer, UnigramMaximisesTheSummedScore) {
  Json vocab = Json::array();
  for (const auto& [piece, score] : std::vector<std::pair<std::string, double>>{
           {"<unk>", 0}, {"▁", -2}, {"a", -1}, {"b", -1}, {"ab", -1.5}, {"▁a", -1.8}}) {
    vocab.push_back(Json::array({piece, score}));
  }
  const Json spec{{"pre_tokenizer", {{"type", "Metaspace"}}},
                  {"model", {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocab}}}};
  const auto t = make_hf_tokenizer(spec, Json::object(), "test");
  EXPECT_EQ(t->encode("ab"), (Ids{5, 3}));           // -2.8, against -3.5 for "▁" "ab"
  EXPECT_EQ(t->encode("abxyb"), (Ids{5, 3, 0, 3}));  // neighbours are one unknown
  for (const Json& bad : {Json(6), Json(-1), Json("a")}) {
    Json other = spec;
    other["model"]["unk_id"] = bad;
    EXPECT_THROW(make_hf_tokenizer(other, Json::object(), "test"), DataError);
  }
}

TEST(HfTokenizer, MergesFilesAreByteLevel) {
  const ScratchFolder folder;
  folder.write("vocab.json", R"({"a":0,"b":1,"ab":2,"Ġ":3,"<|endoftext|>":4})");
  folder.write("merges.txt", "#version: 0.2\na b\n");
  const auto t = load_hf_tokenizer(folder.path());
  EXPECT_EQ(t->encode("ab a<|endoftext|>"), (Ids{2, 3, 0, 4}));
  EXPECT_EQ(t->end_of_document(), 4);
  EXPECT_TRUE(t->text_start().empty());
}

TEST(HfTokenizer, DamagedFilesGiveOneLine) {
  const auto message = [](const Json& spec) {
    try {
      make_hf_tokenizer(spec, Json::object(), "t.json");
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(message(Json::object()).find("t.json: not a tokenizer"), std::string::npos);
  Json bad = byte_level();
  bad["model"]["merges"] = {"a z"};
  EXPECT_NE(message(bad).find("outside the vocabulary"), std::string::npos);
  bad = byte_level();
  bad["model"]["vocab"]["a"] = -3;
  EXPECT_NE(message(bad).find("'a'"), std::string::npos);
  bad = byte_level();
  bad["pre_tokenizer"] = {
      {"type", "Split"}, {"pattern", {{"Regex", "("}}}, {"behavior", "Isolated"}};
  EXPECT_NE(message(bad).find("not a regular expression"), std::string::npos);
  for (const Json& length : {Json(3.3e46), Json(-1), Json("100")}) {
    bad = byte_level();
    bad["model"] = {
        {"type", "WordPiece"}, {"vocab", {{"[UNK]", 0}}}, {"max_input_chars_per_word", length}};
    EXPECT_NE(message(bad).find("max_input_chars_per_word is not a whole number"),
              std::string::npos)
        << length;
  }
  bad = byte_level();
  bad["post_processor"]["special_tokens"]["<end>"]["ids"] = {99};
  EXPECT_NE(message(bad).find("outside the vocabulary"), std::string::npos);
}

TEST(PieceTokenizer, ListsOfPiecesBecomeASentencePieceModel) {
  std::vector<SentencePiece> pieces{{"<unk>", 0, PieceKind::unknown},
                                    {"<s>", 0, PieceKind::control},
                                    {"</s>", 0, PieceKind::control}};
  for (int byte = 0; byte < 256; ++byte) {
    pieces.push_back({fmt::format("<0x{:02X}>", byte), 0, PieceKind::byte});
  }
  pieces.push_back({" a", -1, PieceKind::normal});
  pieces.push_back({" ", -2, PieceKind::normal});
  pieces.push_back({"a", -3, PieceKind::normal});
  const auto t = make_piece_tokenizer(pieces, {}, "test");
  EXPECT_EQ(t->encode("a é"), (Ids{259, 260, 3 + 0xC3, 3 + 0xA9}));
  EXPECT_EQ(t->text_start(), (Ids{1}));
  PieceOptions options;
  options.starts_text = false;
  EXPECT_TRUE(make_piece_tokenizer(pieces, options, "test")->text_start().empty());
}

TEST(Pattern, LookaheadAndUnicodeClassesWork) {
  const Pattern pattern(kGpt2Pattern, "test");
  std::string joined;
  for (const Stretch& s : pattern.cut("Über  90 %")) joined += std::string(s.text) + "|";
  EXPECT_EQ(joined, "Über| | 90| %|");
}

}  // namespace
}  // namespace fathom::tokenizers
