#include "terminal/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

namespace fathom {
namespace {

constexpr std::size_t kBar = 20;
constexpr std::chrono::milliseconds kRedraw{100};

}  // namespace

ProgressLine::ProgressLine(std::ostream& stream, bool live, std::size_t width,
                           std::chrono::milliseconds pause)
    : stream_(stream),
      live_(live),
      width_(std::max<std::size_t>(width, 40)),
      drawn_(std::chrono::steady_clock::now()),
      pause_(pause) {}

ProgressLine::~ProgressLine() {
  clear();
}

void ProgressLine::update(std::string_view text, double fraction) {
  const std::scoped_lock lock(mutex_);
  if (!live_) return update_plain(text, fraction);
  const auto now = std::chrono::steady_clock::now();
  if (visible_ && now - drawn_ < kRedraw) return;
  const double share = std::clamp(fraction, 0.0, 1.0);
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(kBar));
  const std::string bar = std::string(filled, '#') + std::string(kBar - filled, '.');
  const std::size_t room = width_ - kBar - 10;
  erase();
  stream_ << text.substr(0, room);
  if (fraction >= 0) stream_ << fmt::format(" [{}] {:3.0f} %", bar, 100 * share);
  stream_ << std::flush;
  drawn_ = now;
  visible_ = true;
}

void ProgressLine::update_plain(std::string_view text, double fraction) {
  std::string line(text);
  if (fraction >= 0) line += fmt::format("  {:.0f} %", 100 * std::clamp(fraction, 0.0, 1.0));
  const auto now = std::chrono::steady_clock::now();
  if (now - drawn_ < pause_) {
    held_back_ = std::move(line);
    return;
  }
  stream_ << line << "\n" << std::flush;
  held_back_.clear();
  wrote_plain_ = true;
  drawn_ = now;
}

void ProgressLine::note(std::string_view text) {
  const std::scoped_lock lock(mutex_);
  erase();
  stream_ << text << "\n" << std::flush;
}

void ProgressLine::clear() {
  const std::scoped_lock lock(mutex_);
  erase();
  if (wrote_plain_ && !held_back_.empty()) stream_ << held_back_ << "\n";
  held_back_.clear();
  stream_ << std::flush;
}

void ProgressLine::erase() {
  if (visible_) stream_ << "\r\x1b[K";
  visible_ = false;
}

bool is_live_error_stream(const std::ostream& stream) {
  return &stream == &std::cerr && isatty(STDERR_FILENO) == 1;
}

}  // namespace fathom
