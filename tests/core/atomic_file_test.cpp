#include "core/atomic_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "core/error.h"
#include "core/files.h"
#include "core/hash.h"
#include "core/mapped_file.h"
#include "scratch_folder.h"

namespace fathom {
namespace {

TEST(AtomicFile, AppearsOnlyAtCommit) {
  const ScratchFolder folder;
  const auto path = folder.write("a", "old");
  {
    AtomicFile file(path);
    file.write("half");
  }
  EXPECT_EQ(file_bytes(path), "old");
  const std::string large(3 << 20, 'x');  // larger than the buffer
  AtomicFile file(path);
  file.write("0000");
  file.write(large);
  file.write("end");
  file.rewrite(0, "1234", 4);
  EXPECT_EQ(file.size(), 4 + large.size() + 3);
  EXPECT_EQ(file_bytes(path), "old");
  file.commit();
  EXPECT_EQ(file_bytes(path), "1234" + large + "end");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(AtomicFile, AFullDiskLeavesTheOldFile) {
  const ScratchFolder folder;
  const auto path = folder.write("a", "old");
  // A limit on file size fails the write as a full disk does, once its signal is ignored.
  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small{1 << 20, limit.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string error =
      error_of<DataError>([&] { write_file_atomically(path, std::string(3 << 20, 'x')); });
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, previous);
  EXPECT_NE(error.find("cannot write"), std::string::npos) << error;
  EXPECT_EQ(file_bytes(path), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(AtomicFile, NamesWhatCannotBeCreated) {
  const ScratchFolder folder;
  EXPECT_THROW(AtomicFile(folder / "none" / "file"), DataError);
  EXPECT_THROW(write_file_atomically(folder / "none" / "file", "x"), DataError);
}

TEST(AtomicFile, WritesThroughSymlinksAndKeepsTheMode) {
  namespace fs = std::filesystem;
  const ScratchFolder folder;
  const auto file = folder.write("deep/file", "old");
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("deep/file", folder / "link");
  fs::create_symlink("link", folder / "second");
  write_file_atomically(folder / "second", "new");
  EXPECT_EQ(file_bytes(file), "new");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_TRUE(fs::is_symlink(folder / "second"));
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("deep/later", folder / "dangling");
  write_file_atomically(folder / "dangling", "x");
  EXPECT_EQ(file_bytes(folder / "deep" / "later"), "x");
  fs::create_symlink("round", folder / "round");
  EXPECT_THROW(write_file_atomically(folder / "round", "x"), DataError);
}

// Whoever foresees the temporary name and lays a link there gets nothing of his overwritten.
TEST(AtomicFile, DoesNotFollowALinkAtItsTemporaryName) {
  const ScratchFolder folder;
  const std::filesystem::path file = folder / "law.json", foreign = folder / "foreign";
  write_file_atomically(foreign, "theirs");
  std::filesystem::create_symlink(foreign, fmt::format("{}.{}.tmp", file.string(), getpid()));
  write_file_atomically(file, "ours");
  EXPECT_EQ(read_text_file(foreign), "theirs");
  EXPECT_EQ(read_text_file(file), "ours");
  EXPECT_FALSE(std::filesystem::is_symlink(file));
}

TEST(WriteFileOrDevice, FeedsPipesAndDevicesAndLeavesThemInPlace) {
  namespace fs = std::filesystem;
  const ScratchFolder folder;
  const auto pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::string received;
  std::thread reader([&] { received = file_bytes(pipe); });
  write_file_or_device(pipe, "through");
  reader.join();
  EXPECT_EQ(received, "through");
  EXPECT_TRUE(fs::is_fifo(pipe));
  // Links only: where tests run as root, a mistake must not replace a device node.
  fs::create_symlink("/dev/full", folder / "full");
  const std::string error =
      error_of<DataError>([&] { write_file_or_device(folder / "full", "x"); });
  EXPECT_NE(error.find("No space left on device"), std::string::npos) << error;
  EXPECT_TRUE(fs::is_symlink(folder / "full"));
  write_file_or_device(folder / "file", "plain");
  EXPECT_EQ(file_bytes(folder / "file"), "plain");
  EXPECT_THROW(write_file_or_device(folder.path(), "x"), DataError);
}

TEST(MappedFile, ReadsFilesAndRefusesOtherThings) {
  const ScratchFolder folder;
  const MappedFile file(folder.write("a", "abc"));
  ASSERT_EQ(file.bytes().size(), 3u);
  EXPECT_EQ(static_cast<char>(file.bytes()[2]), 'c');
  EXPECT_TRUE(MappedFile(folder.write("empty", "")).bytes().empty());
  EXPECT_THROW(MappedFile(folder / "missing"), DataError);
  EXPECT_THROW(MappedFile(folder.path()), DataError);
  EXPECT_THROW(MappedFile("/dev/null"), DataError);
}

TEST(Hash, DependsOnBytesAndNotOnPieces) {
  Hasher pieces;
  pieces.add("ab");
  pieces.add("");
  pieces.add("c");
  EXPECT_EQ(pieces.value(), hash_bytes("abc"));
  // XXH3_128bits of the empty input with seed 0, from the algorithm's published test vectors.
  EXPECT_EQ(hash_bytes("").hex(), "99aa06d3014798d86001c324468d497f");
  Hasher first, second;
  first.add_field("ab");
  first.add_field("c");
  second.add_field("a");
  second.add_field("bc");
  EXPECT_NE(first.value(), second.value());
}

}  // namespace
}  // namespace fathom
