// One live line of progress on a terminal. Elsewhere it prints a plain line every ten seconds, the
// first after ten seconds: the log of a long job shows progress, that of a short one stays empty.
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

  /// "text [#####.....]  52 %"; redrawn at most ten times per second. Any thread may call. A
  /// fraction below 0 is unknown: the text alone.
  void update(std::string_view text, double fraction);
  /// A permanent line above the live one; without a terminal a plain line.
  void note(std::string_view text);
  /// Removes the line from the screen; a plain line that was held back is written.
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
  std::string held_back_;  // the newest plain line that came too soon to be written
};

/// Whether standard error is a terminal and `stream` writes to it.
bool is_live_error_stream(const std::ostream& stream);

}  // namespace fathom
