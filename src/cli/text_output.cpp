#include "cli/text_output.h"

#include "core/files.h"
#include "core/text.h"

namespace fathom {

bool write_text_output(Session& session, const std::string& output, std::string_view text) {
  if (output.empty() || output == kStandardOutput) {
    session.out << text;
    return false;
  }
  write_file_or_device(output, text);
  return true;
}

std::string printable_lines(std::string_view text) {
  constexpr std::size_t kLongestLine = 2000;
  std::vector<std::string> lines = split(text, '\n');
  for (std::string& line : lines) line = printable(line, kLongestLine);
  return join(lines, "\n");
}

}  // namespace fathom
