#include "core/progress.h"

#include <gtest/gtest.h>

#include <sstream>

namespace fathom {
namespace {

TEST(ProgressLine, IsSilentWithoutATerminal) {
  std::ostringstream stream;
  {
    ProgressLine line(stream, false);
    line.update("working", 0.5);
  }
  EXPECT_EQ(stream.str(), "");
  ProgressLine line(stream, false);
  line.note("done");
  EXPECT_EQ(stream.str(), "done\n");
  EXPECT_FALSE(is_live_error_stream(stream));
}

TEST(ProgressLine, DrawsOnceAndErasesItself) {
  std::ostringstream stream;
  {
    ProgressLine line(stream, true);
    line.update("working", 0.5);
    line.update("working", 0.51);  // too soon to draw again
  }
  EXPECT_EQ(stream.str(), "working [##########..........]  50 %\r\x1b[K");
}

TEST(ProgressLine, NotesStayAboveTheLine) {
  std::ostringstream stream;
  ProgressLine line(stream, true);
  line.update("a", 2.0);
  line.note("first");
  line.update("b", 0.0);
  EXPECT_EQ(stream.str(),
            "a [####################] 100 %\r\x1b[Kfirst\nb [....................]   0 %");
}

TEST(ProgressLine, AnUnknownShareShowsNoBar) {
  std::ostringstream stream;
  { ProgressLine(stream, true).update("read 3 MB", -1); }
  EXPECT_EQ(stream.str(), "read 3 MB\r\x1b[K");
}

}  // namespace
}  // namespace fathom
