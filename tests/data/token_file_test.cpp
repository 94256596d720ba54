#include "data/token_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "core/error.h"
#include "scratch_folder.h"

namespace fathom::data {
namespace {

constexpr Hash128 kTokenizer{7, 9};

std::filesystem::path write_ids(const ScratchFolder& folder, std::uint64_t vocabulary,
                                const std::vector<TokenId>& ids) {
  const auto path = folder / "x.tokens";
  TokenFileWriter writer(path, vocabulary, kTokenizer);
  writer.add(ids);
  writer.count_text(ids.size() * 3);
  writer.count_document();
  writer.commit();
  return path;
}

TEST(TokenFile, RoundTripsBothWidths) {
  const ScratchFolder folder;
  for (const std::uint64_t vocabulary : {65536ull, 65537ull}) {
    std::vector<TokenId> ids(1000);
    std::iota(ids.begin(), ids.end(), 0);
    ids.push_back(static_cast<TokenId>(vocabulary - 1));
    const TokenFile file(write_ids(folder, vocabulary, ids));
    EXPECT_EQ(file.info().bytes_per_id, vocabulary == 65536 ? 2u : 4u);
    EXPECT_EQ(file.size(), ids.size());
    EXPECT_EQ(file.info().text_bytes, ids.size() * 3);
    EXPECT_EQ(file.info().documents, 1u);
    EXPECT_EQ(file.info().tokenizer, kTokenizer);
    file.verify();
    std::vector<TokenId> read(ids.size() - 5);
    file.copy(5, read);
    EXPECT_TRUE(std::equal(read.begin(), read.end(), ids.begin() + 5));
    EXPECT_THROW(file.copy(6, read), InternalError);
    EXPECT_THROW(file.copy(~0ull, read), InternalError);
  }
}

TEST(TokenFile, AnEmptySplitIsAFile) {
  const ScratchFolder folder;
  const TokenFile file(write_ids(folder, 257, {}));
  EXPECT_EQ(file.size(), 0u);
  file.verify();
}

TEST(TokenFile, WriterRefusesIdsOutsideTheVocabulary) {
  const ScratchFolder folder;
  EXPECT_THROW(write_ids(folder, 10, {10}), InternalError);
  EXPECT_THROW(write_ids(folder, 10, {-1}), InternalError);
}

/// Changes header bytes and repairs the header hash, as a hostile writer would.
std::string forge(std::string bytes, std::size_t offset, std::uint64_t value, std::size_t width) {
  std::memcpy(bytes.data() + offset, &value, width);
  const Hash128 hash = hash_bytes(std::string_view(bytes).substr(0, 112));
  std::memcpy(bytes.data() + 112, &hash, sizeof hash);
  return bytes;
}

TEST(TokenFile, MalformedFilesAreOneDataErrorEach) {
  const ScratchFolder folder;
  const std::string good = file_bytes(write_ids(folder, 257, {1, 2, 256}));
  struct Case {
    std::string bytes, says;
  };
  std::string flipped = good;
  flipped[20] ^= 1;
  const std::vector<Case> cases{
      {"", "too short"},
      {good.substr(0, 127), "too short"},
      {"X" + good.substr(1), "not a token file"},
      {forge(good, 8, 2, 4), "version 2"},
      {flipped, "header is damaged"},
      {forge(good, 16, 0, 8), "vocabulary 0"},
      {forge(good, 16, 1ull << 31, 8), "out of range"},
      {forge(good, 12, 4, 4), "do not fit"},
      {forge(good, 12, 0, 4), "do not fit"},
      {forge(good, 24, 4, 8), "4 ids"},
      {forge(good, 24, 0x8000000000000003ull, 8), "announced"},
      {forge(good, 80, 1, 8), "reserved"},
      {good + "x", "7 bytes follow"},
      {good.substr(0, good.size() - 1), "5 bytes follow"},
  };
  for (const Case& entry : cases) {
    const auto path = folder.write("bad.tokens", entry.bytes);
    const std::string error = error_of<DataError>([&] { TokenFile file(path); });
    EXPECT_NE(error.find(entry.says), std::string::npos) << entry.says << " / " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
}

TEST(TokenFile, DamagedIdsAreFoundByVerifyAndNeverHandedOut) {
  const ScratchFolder folder;
  std::string bytes = file_bytes(write_ids(folder, 257, {1, 2, 3}));
  bytes[128 + 3] = 1;  // second id becomes 258
  const TokenFile file(folder.write("bad.tokens", bytes));
  EXPECT_THROW(file.verify(), DataError);
  std::vector<TokenId> ids(3);
  EXPECT_NE(error_of<DataError>([&] { file.copy(0, ids); }).find("outside the vocabulary"),
            std::string::npos);
  file.copy(2, std::span(ids).first(1));
  EXPECT_EQ(ids[0], 3);

  std::string wide = file_bytes(write_ids(folder, 65537, {1}));
  std::memset(wide.data() + 128, 0xff, 4);  // negative as TokenId
  const TokenFile wide_file(folder.write("wide.tokens", wide));
  EXPECT_THROW(wide_file.copy(0, std::span(ids).first(1)), DataError);
}

}  // namespace
}  // namespace fathom::data
