#include "terminal/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "core/text.h"

namespace fathom {
namespace {

/// The first set of LC_ALL, LC_CTYPE and LANG decides, as in setlocale. If none is set (a bare
/// container, a service) UTF-8 is assumed: everything that reads the output today understands it.
bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string lower = to_lower(value);
    return lower.find("utf-8") != std::string::npos || lower.find("utf8") != std::string::npos;
  }
  return true;
}

}  // namespace

std::string Terminal::paint(std::string_view text, std::string_view code) const {
  if (!colour) return std::string(text);
  return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

std::string Terminal::plain(std::string_view text) const {
  std::string result(text);
  if (unicode) return result;
  struct Swap {
    std::string_view from, to;
  };
  constexpr std::array<Swap, 21> kSwaps{
      {{"×", "x"},  {"·", "."},  {"–", "-"}, {"—", "-"},    {"≈", "~"}, {"≥", ">="}, {"≤", "<="},
       {"²", "^2"}, {"±", "+-"}, {"−", "-"}, {"√", "sqrt"}, {"│", "|"}, {"─", "-"},  {"┼", "+"},
       {"└", "+"},  {"▲", "^"},  {"▼", "v"}, {"…", "..."},  {"µ", "u"}, {"━", "="},  {"•", "*"}}};
  for (const Swap& swap : kSwaps) {
    for (std::size_t at = result.find(swap.from); at != std::string::npos;
         at = result.find(swap.from, at + swap.to.size())) {
      result.replace(at, swap.from.size(), swap.to);
    }
  }
  return result;
}

Terminal detect_terminal(int file_descriptor) {
  Terminal terminal;
  const bool is_terminal = isatty(file_descriptor) == 1;
  const char* no_colour = std::getenv("NO_COLOR");
  const char* kind = std::getenv("TERM");
  terminal.colour = is_terminal && (no_colour == nullptr || *no_colour == '\0') &&
                    (kind == nullptr || std::string_view(kind) != "dumb");
  terminal.unicode = locale_is_utf8();
  winsize size{};
  if (is_terminal && ioctl(file_descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    terminal.width = std::clamp<std::size_t>(size.ws_col, 60, 140);
  }
  return terminal;
}

}  // namespace fathom
