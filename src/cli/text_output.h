// The one way commands write a text that -o may send elsewhere, and texts of files on a terminal.
#pragma once

#include <string>
#include <string_view>

#include "cli/command_line.h"

namespace fathom {

inline constexpr const char* kStandardOutput = "-";

/// Writes `text` to `output`: standard output when empty or "-", else the file, pipe or device.
/// Returns whether it went elsewhere, so that the command may say where.
bool write_text_output(Session& session, const std::string& output, std::string_view text);

/// Lines that may hold anything, as found in a file or a path: a terminal must neither obey them
/// nor be flooded by them.
std::string printable_lines(std::string_view text);

}  // namespace fathom
