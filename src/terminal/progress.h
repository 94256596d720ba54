// One live line of progress on a terminal. Anywhere else plain lines, the first after ten seconds
// and one every ten seconds, so that a log of a long job shows life and that of a short one
// nothing.
#pragma once

#include <chrono>
#include <mutex>
#include <ostream>
#include <string>
#include <string_view>

namespace fathom {

class ProgressLine {
 public:
  /// `live`: the stream is a terminal that can be redrawn. `pause`: between plain lines.
  ProgressLine(std::ostream& stream, bool live, std::size_t width = 80,
               std::chrono::milliseconds pause = std::chrono::seconds(10));
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// "text [#####.....]  52 %"; redrawn ten times a second at most. Any thread may call. A fraction
  /// below 0 is unknown: the text alone.
  void update(std::string_view text, double fraction);
  /// A lasting line above the live one; without a terminal a plain line.
  void note(std::string_view text);
  /// Takes the line off the screen; the last of plain lines is written if it was held back.
  void clear();

 private:
  void erase();
  void update_plain(std::string_view text, double fraction);

  std::ostream& stream_;
  bool live_;
  std::size_t width_;
  std::mutex mutex_;
  std::chrono::steady_clock::time_point drawn_;
  bool visible_ = false;
  std::chrono::milliseconds pause_;
  bool wrote_plain_ = false;
  std::string held_back_;  // the newest plain line that was too soon to write
};

/// Whether standard error is a terminal and `stream` writes to it.
bool is_live_error_stream(const std::ostream& stream);

}  // namespace fathom
