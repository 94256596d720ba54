#include "terminal/progress.h"

#include <gtest/gtest.h>

#include <sstream>
#include <thread>

namespace fathom {
namespace {

using std::chrono::milliseconds;

TEST(ProgressLine, AShortJobIsSilentWithoutATerminal) {
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

TEST(ProgressLine, ALongJobWritesPlainLinesWithoutATerminal) {
  std::ostringstream stream;
  ProgressLine line(stream, false, 80, milliseconds(0));
  line.update("step 1", 0.25);
  line.update("step 2", -1);
  EXPECT_EQ(stream.str(), "step 1  25 %\nstep 2\n");
  line.clear();
  EXPECT_EQ(stream.str(), "step 1  25 %\nstep 2\n");
}

TEST(ProgressLine, TheLastPlainLineIsNotLost) {
  std::ostringstream stream;
  {
    ProgressLine line(stream, false, 80, milliseconds(50));
    std::this_thread::sleep_for(milliseconds(60));
    line.update("step 1", 0.25);
    // Both come at once after the first; if the machine stalls for 50 ms they are simply written.
    line.update("step 2", 0.5);
    line.update("step 3", 1.0);
  }
  const std::string text = stream.str();
  EXPECT_TRUE(text.starts_with("step 1  25 %\n")) << text;
  EXPECT_TRUE(text.ends_with("step 3  100 %\n")) << text;
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
