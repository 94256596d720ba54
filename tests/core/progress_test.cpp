#include "core/progress.h"

#include <gtest/gtest.h>

#include <sstream>

namespace fathom {
namespace {

TEST(Progress, TextShowsShareDetailAndTimeLeft) {
  EXPECT_EQ(progress_text("encode", 0.25, "3 MB", 10), "encode   25 %  3 MB  30.0 s left");
  EXPECT_EQ(progress_text("encode", -1, "3 MB", 10), "encode  3 MB");
  EXPECT_EQ(progress_text("encode", 1, "", 10), "encode  100 %");
  EXPECT_EQ(progress_text("encode", 0.5, "", 0.5), "encode   50 %");  // too early to forecast
}

TEST(Progress, LiveLineIsShownAtOnceAndWiped) {
  std::ostringstream stream;
  {
    ProgressLine line(stream, true, 12);
    line.show("count", 0.5, "a long detail");
    for (int i = 0; i < 1000; ++i) line.show("count", 0.6, "");  // held back: too soon
  }
  EXPECT_EQ(stream.str(), "\rcount   50 \x1b[K\r\x1b[K");
}

TEST(Progress, ShortWorkLeavesNoTraceInALog) {
  std::ostringstream stream;
  {
    ProgressLine line(stream, false);
    line.show("count", 0.5, "");
    line.show("encode", 0.5, "");
  }
  EXPECT_EQ(stream.str(), "");
}

}  // namespace
}  // namespace fathom
