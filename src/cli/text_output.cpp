#include "cli/text_output.h"

#include "core/files.h"

namespace fathom {

bool write_text_output(Session& session, const std::string& output, std::string_view text) {
  if (output.empty() || output == kStandardOutput) {
    session.out << text;
    return false;
  }
  write_file_or_device(output, text);
  return true;
}

}  // namespace fathom
