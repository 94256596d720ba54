#include "core/progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/units.h"

namespace fathom {

std::string progress_text(std::string_view stage, double fraction, std::string_view detail,
                          double elapsed_seconds) {
  std::string text(stage);
  if (fraction >= 0) text += fmt::format("  {:3.0f} %", 100 * std::min(fraction, 1.0));
  if (!detail.empty()) text += fmt::format("  {}", detail);
  // A forecast from the first instants would only flicker.
  if (fraction > 0 && fraction < 1 && elapsed_seconds > 1) {
    text += fmt::format("  {} left", format_seconds(elapsed_seconds * (1 - fraction) / fraction));
  }
  return text;
}

ProgressLine::ProgressLine(std::ostream& stream, bool live, std::size_t width)
    : stream_(stream), live_(live), width_(width) {}

ProgressLine::~ProgressLine() {
  clear();
}

void ProgressLine::show(std::string_view stage, double fraction, std::string_view detail) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  const bool new_stage = stage_ != stage;
  if (new_stage) {
    stage_ = stage;
    stage_start_ = now;
  }
  const auto pause = live_ ? std::chrono::milliseconds(100) : std::chrono::seconds(10);
  if (now - last_ < pause && !(live_ && new_stage)) return;
  last_ = now;
  const double elapsed = std::chrono::duration<double>(now - stage_start_).count();
  const std::string text = progress_text(stage, fraction, detail, elapsed);
  if (live_) {
    // ESC [K wipes the rest of a longer line before.
    stream_ << '\r' << text.substr(0, width_ - 1) << "\x1b[K" << std::flush;
    visible_ = true;
  } else {
    stream_ << text << '\n' << std::flush;
  }
}

void ProgressLine::clear() {
  const std::lock_guard lock(mutex_);
  if (visible_) stream_ << "\r\x1b[K" << std::flush;
  visible_ = false;
}

}  // namespace fathom
