// One line of progress for work that takes more than a moment.
//
// On a terminal the line is rewritten in place, at most ten times a second, and wiped at the end;
// elsewhere a plain line appears every ten seconds, so that logs stay short. Safe to call from
// several threads.
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <ostream>
#include <string>
#include <string_view>

namespace fathom {

class ProgressLine {
 public:
  /// `live`: the stream is a terminal of `width` columns.
  ProgressLine(std::ostream& stream, bool live, std::size_t width = 80);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// "stage  42 %  detail  3.1 s left". `fraction` below 0 means unknown: no percentage, no time.
  /// A new stage starts a new clock.
  void show(std::string_view stage, double fraction, std::string_view detail);
  /// Wipes the live line so that other text may follow.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  std::mutex mutex_;
  std::ostream& stream_;
  bool live_;
  std::size_t width_;
  bool visible_ = false;
  std::string stage_;
  Clock::time_point stage_start_ = Clock::now();
  Clock::time_point last_ = Clock::now();
};

/// The text of one line, without control characters; `elapsed_seconds` is that of the stage.
std::string progress_text(std::string_view stage, double fraction, std::string_view detail,
                          double elapsed_seconds);

}  // namespace fathom
