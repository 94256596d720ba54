// What the terminal can show, decided once from the environment and passed down as a value.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fathom {

struct Terminal {
  bool colour = false;
  bool unicode = true;
  std::size_t width = 100;

  std::string bold(std::string_view text) const { return paint(text, "1"); }
  std::string dim(std::string_view text) const { return paint(text, "2"); }
  std::string accent(std::string_view text) const { return paint(text, "1;36"); }
  std::string warning(std::string_view text) const { return paint(text, "33"); }

  /// Replaces the few non-ASCII characters Fathom writes when the locale cannot show them.
  std::string plain(std::string_view text) const;

 private:
  std::string paint(std::string_view text, std::string_view code) const;
};

/// Colour needs a terminal and no NO_COLOR; Unicode a UTF-8 locale; width from the terminal or 100.
Terminal detect_terminal(int file_descriptor);

}  // namespace fathom
