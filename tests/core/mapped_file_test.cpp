// Mapped files: memory that is given back is not held, and the bytes are still there.
#include "core/mapped_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "scratch_folder.h"

namespace fathom {
namespace {

/// Kilobytes of mapped files that this process holds in memory.
long resident_files() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssFile:")) return std::stol(line.substr(8));
  }
  return -1;
}

TEST(MappedFile, ReleasedPagesAreNotHeldAndReadTheSameAgain) {
  const ScratchFolder folder;
  constexpr std::size_t kBytes = 16 << 20;
  folder.write("data", std::string(kBytes, 'x'));
  const MappedFile file(folder / "data");
  const auto sum = [](std::span<const std::byte> bytes) {
    std::size_t total = 0;
    for (const std::byte b : bytes) total += static_cast<std::size_t>(b);
    return total;
  };
  const long before = resident_files();
  ASSERT_EQ(sum(file.bytes()), kBytes * 'x');
  const long held = resident_files();
  EXPECT_GT(held - before, 15 << 10);
  release_pages(file.bytes().subspan(1, kBytes - 2));  // all but the pages at both ends
  EXPECT_LT(resident_files() - before, 1 << 10);
  EXPECT_EQ(sum(file.bytes()), kBytes * 'x');
  release_pages({});
}

}  // namespace
}  // namespace fathom
