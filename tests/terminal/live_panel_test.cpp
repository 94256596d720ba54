#include "terminal/live_panel.h"

#include <gtest/gtest.h>

#include <sstream>

namespace fathom {
namespace {

TEST(LivePanel, RedrawsInPlaceAndKeepsNotes) {
  std::ostringstream stream;
  {
    LivePanel panel(stream, true, 20);
    panel.draw({"one", "two"});
    panel.note("kept");
    panel.draw({"three"});
  }
  EXPECT_EQ(stream.str(), "one\ntwo\n\x1b[2A\r\x1b[Jkept\nthree\n\x1b[1A\r\x1b[J");
}

TEST(LivePanel, CutsLinesSoThatTheyTakeOneRow) {
  std::ostringstream stream;
  LivePanel panel(stream, true, 8);
  panel.draw({"0123456789", "µµµµµµµµµµ"});
  EXPECT_EQ(stream.str(), "0123456\x1b[0m\nµµµµµµµ\x1b[0m\n");
}

TEST(LivePanel, IsSilentWithoutATerminal) {
  std::ostringstream stream;
  {
    LivePanel panel(stream, false);
    panel.draw({"live"});
    panel.note("kept");
  }
  EXPECT_EQ(stream.str(), "kept\n");
}

}  // namespace
}  // namespace fathom
