#include "engine/cpu/memory_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "scratch_folder.h"

namespace fathom::engine::cpu {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

TEST(MemoryCheck, CountsWhatIsFreeAndTheGroupsLimit) {
  const std::string meminfo =
      "MemTotal:       24683520 kB\nMemFree:  100 kB\nMemAvailable:   2048 kB\nSwapFree: 1024 kB\n";
  EXPECT_EQ(available_bytes(meminfo, kNoLimit), 3072 * 1024);
  EXPECT_EQ(available_bytes(meminfo, 1e6), 1e6);
  EXPECT_TRUE(std::isinf(available_bytes("", kNoLimit)));
}

TEST(MemoryCheck, RefusesMoreThanThereIs) {
  require_memory(1);
  const std::string message = error_of<DeviceError>([] { require_memory(std::int64_t{1} << 60); });
  EXPECT_NE(message.find("it takes 1099511627776 MiB"), std::string::npos) << message;
}

}  // namespace
}  // namespace fathom::engine::cpu
