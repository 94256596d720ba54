#include "terminal/live_panel.h"

#include <fmt/format.h>

#include "core/text.h"

namespace fathom {
namespace {

/// Cuts a line at `width` columns; a cut line loses its colours too.
std::string cut(const std::string& line, std::size_t width) {
  if (display_width(line) <= width) return line;
  std::string result;
  std::size_t columns = 0;
  for (std::size_t i = 0; i < line.size() && columns < width; ++i) {
    result += line[i];
    const bool continues = i + 1 < line.size() && (line[i + 1] & 0xc0) == 0x80;
    if (!continues) ++columns;
  }
  return result + "\x1b[0m";
}

}  // namespace

LivePanel::LivePanel(std::ostream& stream, bool live, std::size_t width)
    : stream_(stream), live_(live), width_(width) {}

LivePanel::~LivePanel() {
  clear();
}

void LivePanel::draw(const std::vector<std::string>& lines) {
  if (!live_) return;
  clear();
  for (const std::string& line : lines) stream_ << cut(line, width_ - 1) << "\n";
  stream_ << std::flush;
  drawn_ = lines.size();
}

void LivePanel::note(std::string_view text) {
  clear();
  stream_ << text << "\n" << std::flush;
}

void LivePanel::clear() {
  if (drawn_ > 0) stream_ << fmt::format("\x1b[{}A\r\x1b[J", drawn_) << std::flush;
  drawn_ = 0;
}

}  // namespace fathom
