#include "data/line_reader.h"

#include <cstring>

#include "core/utf8.h"

namespace fathom::data {
namespace {

constexpr std::size_t kLineBytes = 64 << 10;

/// Where to cut a line longer than kLineBytes: before its last space, else between characters.
std::size_t cut_long_line(std::string_view text) {
  const std::size_t blank = text.substr(0, kLineBytes).rfind(' ');
  if (blank != std::string_view::npos && blank > 0) return blank;
  return utf8_boundary(text, kLineBytes);
}

std::size_t find_line_end(std::string_view ahead) {
  return ahead.substr(0, kLineBytes).find('\n');
}

}  // namespace

std::string_view without_line_end(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::string_view LineReader::look() {
  std::string_view ahead(buffer_.data() + begin_, end_ - begin_);
  std::size_t line_end = find_line_end(ahead);
  if (line_end == std::string_view::npos && ahead.size() <= kLineBytes && !ended_) {
    fill();
    ahead = {buffer_.data() + begin_, end_ - begin_};
    line_end = find_line_end(ahead);
  }
  if (line_end != std::string_view::npos) return ahead.substr(0, line_end + 1);
  return ahead.size() <= kLineBytes ? ahead : ahead.substr(0, cut_long_line(ahead));
}

/// Moves what is left to the front and reads until more than kLineBytes are there.
void LineReader::fill() {
  if (buffer_.empty()) buffer_.resize(8 * kLineBytes);
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  while (!ended_ && end_ < buffer_.size()) {
    const std::size_t count = source_->read(std::span(buffer_).subspan(end_));
    ended_ = count == 0;
    end_ += count;
    if (end_ > kLineBytes) break;
  }
}

}  // namespace fathom::data
