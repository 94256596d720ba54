// One live line of progress on a terminal; silence anywhere else, so that logs stay clean.
#pragma once

#include <chrono>
#include <mutex>
#include <ostream>
#include <string>
#include <string_view>

namespace fathom {

class ProgressLine {
 public:
  /// `live`: the stream is a terminal that can be redrawn.
  ProgressLine(std::ostream& stream, bool live, std::size_t width = 80);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// "text [#####.....]  52 %"; redrawn ten times a second at most. Any thread may call. A fraction
  /// below 0 is unknown: the text alone.
  void update(std::string_view text, double fraction);
  /// A lasting line above the live one; without a terminal a plain line.
  void note(std::string_view text);
  /// Takes the line off the screen.
  void clear();

 private:
  void erase();

  std::ostream& stream_;
  bool live_;
  std::size_t width_;
  std::mutex mutex_;
  std::chrono::steady_clock::time_point drawn_;
  bool visible_ = false;
};

/// Whether standard error is a terminal and `stream` writes to it.
bool is_live_error_stream(const std::ostream& stream);

}  // namespace fathom
