// Several live lines at the foot of a terminal, redrawn in place; elsewhere it prints nothing.
#pragma once

#include <chrono>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace fathom {

class LivePanel {
 public:
  /// `live`: the stream is a terminal that can be redrawn. Lines are cut at `width` columns.
  LivePanel(std::ostream& stream, bool live, std::size_t width = 80);
  ~LivePanel();
  LivePanel(const LivePanel&) = delete;
  LivePanel& operator=(const LivePanel&) = delete;

  bool live() const { return live_; }
  void draw(const std::vector<std::string>& lines);
  /// A permanent line above the panel; without a terminal a plain line.
  void note(std::string_view text);
  void clear();

 private:
  std::ostream& stream_;
  bool live_;
  std::size_t width_;
  std::size_t drawn_ = 0;  // lines on the screen
};

}  // namespace fathom
