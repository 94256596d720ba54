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

/// The file as version 1 had it: no block hashes. `body` is its bytes of ids.
std::string without_blocks(std::string bytes, std::size_t body) {
  bytes.resize(128 + body);
  std::memset(bytes.data() + 80, 0, 16);
  return forge(bytes, 8, 1, 4);
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
      {forge(good, 8, 3, 4), "version 3"},
      {forge(good, 8, 1, 4), "14 bytes follow"},
      {forge(without_blocks(good, 6), 80, 1, 8), "reserved"},
      {forge(good, 80, 1, 8), "hashes of its blocks"},
      {flipped, "header is damaged"},
      {forge(good, 16, 0, 8), "vocabulary 0"},
      {forge(good, 16, 1ull << 31, 8), "out of range"},
      {forge(good, 12, 4, 4), "do not fit"},
      {forge(good, 12, 0, 4), "do not fit"},
      {forge(good, 24, 4, 8), "4 ids"},
      {forge(good, 24, 0x8000000000000003ull, 8), "announced"},
      {forge(good, 96, 1, 8), "reserved"},
      {good + "x", "15 bytes follow"},
      {good.substr(0, good.size() - 1), "13 bytes follow"},
  };
  for (const Case& entry : cases) {
    const auto path = folder.write("bad.tokens", entry.bytes);
    const std::string error = error_of<DataError>([&] { TokenFile file(path); });
    EXPECT_NE(error.find(entry.says), std::string::npos) << entry.says << " / " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
}

TEST(TokenFile, DamagedIdsAreNeverHandedOut) {
  const ScratchFolder folder;
  std::string bytes = file_bytes(write_ids(folder, 257, {1, 2, 3}));
  bytes[128 + 2] = 4;  // the second id
  std::vector<TokenId> ids(3);
  for (const std::string& version : {bytes, without_blocks(bytes, 6)}) {
    const TokenFile file(folder.write("bad.tokens", version));
    EXPECT_THROW(file.verify(), DataError);
    EXPECT_THROW(file.ids(), DataError);
    EXPECT_NE(error_of<DataError>([&] {
                file.copy(2, std::span(ids).first(1));
              }).find("damaged among ids 0..2"),
              std::string::npos);
  }
}

TEST(TokenFile, IdsOutsideTheVocabularyAreNeverHandedOut) {
  // Right hashes, wrong ids: what a hostile writer would make.
  const ScratchFolder folder;
  const auto with_vocabulary = [&](std::uint64_t written, std::uint64_t claimed, TokenId id) {
    return forge(file_bytes(write_ids(folder, written, {1, id, 3})), 16, claimed, 8);
  };
  std::vector<TokenId> ids(3);
  const TokenFile file(folder.write("bad.tokens", with_vocabulary(300, 257, 258)));
  EXPECT_NE(error_of<DataError>([&] { file.copy(0, ids); }).find("outside the vocabulary"),
            std::string::npos);
  file.copy(2, std::span(ids).first(1));
  EXPECT_EQ(ids[0], 3);
  const TokenFile wide(folder.write("wide.tokens", with_vocabulary(1 << 30, 65537, 1 << 29)));
  EXPECT_THROW(wide.copy(0, ids), DataError);
}

// Every id that is used was checked, and no others: 64 KiB blocks, hashed when first touched.
TEST(TokenFile, ABlockIsCheckedWhenItIsFirstRead) {
  constexpr std::size_t kIdsPerBlock = 32 << 10;
  const ScratchFolder folder;
  std::vector<TokenId> ids(4 * kIdsPerBlock + 100);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<TokenId>(i * 7 % 257);
  std::string bytes = file_bytes(write_ids(folder, 257, ids));
  bytes[128 + 2 * (3 * kIdsPerBlock + 5)] ^= 1;  // in the fourth block of five
  const TokenFile file(folder.write("bad.tokens", bytes));
  EXPECT_EQ(file.checked_bytes(), 0u);
  std::vector<TokenId> read(10);
  file.copy(7, read);
  EXPECT_EQ(file.checked_bytes(), 1u << 16);
  file.copy(kIdsPerBlock - 5, read);  // across an edge
  EXPECT_EQ(file.checked_bytes(), 2u << 16);
  EXPECT_TRUE(std::equal(read.begin(), read.end(), ids.begin() + kIdsPerBlock - 5));
  file.copy(4 * kIdsPerBlock + 90, read);  // the short last block
  EXPECT_EQ(file.checked_bytes(), (2u << 16) + 200);
  EXPECT_NE(error_of<DataError>([&] {
              file.copy(3 * kIdsPerBlock - 5, read);
            }).find("damaged among ids 98304..131071"),
            std::string::npos);
  EXPECT_THROW(file.ids(), DataError);
  EXPECT_THROW(file.verify(), DataError);
}

// Corpora of before the block hashes: the ids are one block.
TEST(TokenFile, TheFirstVersionIsRead) {
  const ScratchFolder folder;
  const std::vector<TokenId> ids{5, 6, 7};
  const std::string bytes = without_blocks(file_bytes(write_ids(folder, 257, ids)), 6);
  const TokenFile file(folder.write("old.tokens", bytes));
  std::vector<TokenId> read(1);
  file.copy(1, read);
  EXPECT_EQ(read[0], 6);
  EXPECT_EQ(file.checked_bytes(), 6u);
  EXPECT_EQ(file.ids().size(), 6u);
  file.verify();
}

}  // namespace
}  // namespace fathom::data
