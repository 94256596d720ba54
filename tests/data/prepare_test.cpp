#include "data/prepare.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "data/token_set.h"
#include "sample_text.h"
#include "scratch_folder.h"

namespace fathom::data {
namespace {

/// 60 documents of a few hundred words, with titles.
std::string articles() {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    text += "= Article " + std::to_string(i) + " =\n" + sample_text(300, 1000 + i) + "\n\n";
  }
  return text;
}

PrepareRequest request_for(const std::filesystem::path& corpus, const std::filesystem::path& output,
                           const std::string& kind) {
  PrepareRequest request;
  request.sources = {{corpus, {}, ""}};
  request.output = output;
  request.split = {0.2, 0.2, 0};
  request.tokenizer = {kind, 400};
  request.threads = 2;
  return request;
}

std::string decoded(const TokenSet& set, Split split) {
  std::vector<TokenId> ids(set.file(split).size());
  set.file(split).copy(0, ids);
  return set.tokenizer().decode(ids);
}

class Prepare : public ::testing::TestWithParam<const char*> {};

TEST_P(Prepare, SplitsPartitionTheCorpusAndDecodeToIt) {
  const ScratchFolder folder;
  const std::string text = articles();
  const auto corpus = folder.write("corpus.txt", text);
  const PrepareReport report = prepare(request_for(corpus, folder / "t", GetParam()));
  const TokenSet set(folder / "t");
  set.verify();
  EXPECT_EQ(set.hash(), report.hash);
  std::size_t bytes = 0, documents = 0;
  for (const Split split : kSplits) {
    const TokenFileInfo& info = set.file(split).info();
    const std::string part = decoded(set, split);
    EXPECT_EQ(part.size(), info.text_bytes);
    EXPECT_GT(info.documents, 3u);
    bytes += part.size();
    documents += info.documents;
    // Every document is whole, in one split: its text appears there and its title nowhere else.
    for (std::size_t at = part.find("= Article"); at != std::string::npos;
         at = part.find("= Article", at + 1)) {
      const std::size_t end = std::min(part.find("= Article", at + 1), part.size());
      EXPECT_NE(text.find(part.substr(at, end - at)), std::string::npos);
    }
  }
  EXPECT_EQ(bytes, text.size());
  EXPECT_EQ(documents, 60u);
}

TEST_P(Prepare, ThreadsAndFilesDoNotChangeTheTokens) {
  const ScratchFolder folder;
  const auto corpus = folder.write("corpus.txt", articles());
  PrepareRequest request = request_for(corpus, folder / "one", GetParam());
  request.threads = 1;
  const PrepareReport one = prepare(request);
  request.threads = 5;
  request.output = folder / "five";
  const PrepareReport five = prepare(request);
  EXPECT_EQ(one.hash, five.hash);
  EXPECT_EQ(prepare(request).hash, five.hash);  // over an existing token set
  request.split.seed = 1;
  EXPECT_NE(prepare(request).hash, five.hash);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Prepare, ::testing::Values("bytes", "chars", "bpe"));

TEST(PrepareCorpus, EndTokensCloseDocumentsExceptBlocks) {
  const ScratchFolder folder;
  const auto corpus = folder.write("c.txt", "ab\ncd\n");
  PrepareRequest request = request_for(corpus, folder / "t", "bytes");
  request.split = {0, 0, 0};
  request.documents.kind = DocumentKind::lines;
  prepare(request);
  std::vector<TokenId> ids(8);
  TokenSet(folder / "t").file(Split::train).copy(0, ids);
  EXPECT_EQ(ids, (std::vector<TokenId>{'a', 'b', '\n', 256, 'c', 'd', '\n', 256}));
  request.documents.kind = DocumentKind::blocks;
  EXPECT_EQ(prepare(request).splits[Split::train].count, 6u);
}

TEST(PrepareCorpus, HeldOutSourcesGoWhereTheyAreSent) {
  const ScratchFolder folder;
  PrepareRequest request = request_for(folder.write("a", "train"), folder / "t", "bytes");
  request.sources.push_back({folder.write("b", "valid"), Split::valid, ""});
  request.sources.push_back({folder.write("c", "test"), Split::test, ""});
  request.split = {0, 0, 0};
  prepare(request);
  const TokenSet set(folder / "t");
  for (const Split split : kSplits) EXPECT_EQ(decoded(set, split), to_string(split));
}

TEST(PrepareCorpus, AnotherCorpusTakesTheSameTokenizer) {
  const ScratchFolder folder;
  prepare(request_for(folder.write("a", articles()), folder / "a.tokens", "bpe"));
  PrepareRequest request =
      request_for(folder.write("b", sample_text(9000, 77)), folder / "b.tokens", "bytes");
  request.tokenizer_from = folder / "a.tokens";
  prepare(request);
  const TokenSet a(folder / "a.tokens"), b(folder / "b.tokens");
  EXPECT_EQ(a.tokenizer().hash(), b.tokenizer().hash());
  EXPECT_NE(a.hash(), b.hash());
}

TEST(PrepareCorpus, WrongRequestsAndTextsAreOneLineAndLeaveNothing) {
  const ScratchFolder folder;
  const auto error_for = [&](const std::string& text, const std::string& kind) {
    const auto corpus = folder.write("corpus.txt", text);
    PrepareRequest request = request_for(corpus, folder / "t", kind);
    request.split = {0, 0, 0};
    return error_of<DataError>([&] { prepare(request); });
  };
  EXPECT_EQ(error_for("", "bytes"), "the corpus is empty: it contains no text");
  EXPECT_EQ(error_for("", "chars"), "the corpus is empty: it contains no text");
  EXPECT_EQ(error_for("", "bpe"), "the corpus is empty: it contains no text");
  EXPECT_NE(error_for("few words only", "bpe").find("take the bytes tokenizer"), std::string::npos);
  EXPECT_NE(error_for("ok\nbad \xc3\x28 here", "chars").find("corpus.txt: byte 7: not valid UTF-8"),
            std::string::npos);
  EXPECT_EQ(error_for("bad \xc3\x28 but bytes", "bytes"), "");
  std::filesystem::remove_all(folder / "t");
  error_for("", "bytes");
  EXPECT_FALSE(std::filesystem::exists(folder / "t"));

  const auto corpus = folder.write("dir/corpus.txt", articles());
  folder.write("other/file", "x");
  EXPECT_THROW(prepare(request_for(corpus, folder / "other", "bytes")), ConfigError);
  EXPECT_THROW(prepare(request_for(folder / "dir", folder / "dir/out", "bytes")), ConfigError);
  PrepareRequest request = request_for(corpus, folder / "t", "bytes");
  request.split = {0.6, 0.6, 0};
  EXPECT_THROW(prepare(request), ConfigError);
}

TEST(TokenSet, RefusesPartsOfDifferentPreparations) {
  const ScratchFolder folder;
  const auto corpus = folder.write("corpus.txt", articles());
  prepare(request_for(corpus, folder / "a", "bytes"));
  PrepareRequest request = request_for(corpus, folder / "b", "bytes");
  request.split.seed = 5;
  prepare(request);
  std::filesystem::copy_file(folder / "b/valid.tokens", folder / "a/valid.tokens",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_NE(error_of<DataError>([&] { TokenSet set(folder / "a"); }).find("another preparation"),
            std::string::npos);
  std::filesystem::remove(folder / "b/test.tokens");
  EXPECT_THROW(TokenSet(folder / "b"), DataError);
  EXPECT_NE(error_of<DataError>([&] { TokenSet set(folder / "c"); }).find("fathom data prepare"),
            std::string::npos);
  for (const char* manifest : {"", "[]", "{}", R"({"schema":"fathom.tokens.v9"})",
                               R"({"schema":"fathom.tokens.v1","sources":3})"}) {
    folder.write("a/corpus.json", manifest);
    EXPECT_THROW(TokenSet(folder / "a"), DataError) << manifest;
  }
}

/// What a preparation that was killed, or failed on a full disk, has left behind.
TEST(PrepareLeftovers, DoNotBlockTheSecondTry) {
  const ScratchFolder folder;
  const auto corpus = folder.write("corpus.txt", articles());
  const PrepareRequest request = request_for(corpus, folder / "t", "bpe");
  prepare(request);
  const std::string manifest = file_bytes(folder / "t" / "corpus.json");
  std::filesystem::remove(folder / "t" / "corpus.json");
  std::filesystem::rename(folder / "t" / "valid.tokens", folder / "t" / "valid.tokens.99.tmp");
  for (const char* name : {"tokenizer.json", "tokenizer.model", "corpus.json"}) {
    folder.write(fmt::format("t/{}.99.tmp", name), "half of it");
  }
  prepare(request);
  EXPECT_EQ(file_bytes(folder / "t" / "corpus.json"), manifest);
  for (const auto& entry : std::filesystem::directory_iterator(folder / "t")) {
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
  }
  TokenSet(folder / "t").verify();
}

TEST(PrepareLeftovers, SomebodysOwnFilesAreNotLeftovers) {
  const ScratchFolder folder;
  const auto corpus = folder.write("corpus.txt", articles());
  folder.write("t/tokenizer.model", "somebody's own");
  EXPECT_THROW(prepare(request_for(corpus, folder / "t", "bytes")), ConfigError);
  EXPECT_EQ(file_bytes(folder / "t" / "tokenizer.model"), "somebody's own");
  folder.write("u/notes.txt", "x");
  EXPECT_THROW(prepare(request_for(corpus, folder / "u", "bytes")), ConfigError);
}

}  // namespace
}  // namespace fathom::data
