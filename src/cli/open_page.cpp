#include "cli/open_page.h"

#include <spawn.h>
#include <unistd.h>

#include "cli/json_output.h"
#include "cli/text_output.h"

namespace fathom {

namespace fs = std::filesystem;

void write_page(Session& session, const std::string& kind, const PageOutput& output,
                const std::string& page) {
  if (!write_text_output(session, output.path.string(), page)) return;
  print_page(session, kind, output.path, output.json);
  if (output.open) open_page(session, output.path);
}

void print_page(Session& session, const std::string& kind, const fs::path& page, bool json) {
  if (!json) {
    session.out << page.string() << "\n";
    return;
  }
  Json result = json_document(kind);
  result["path"] = page.string();
  std::error_code no_file;  // a pipe has no size
  const auto bytes = fs::file_size(page, no_file);
  result["bytes"] = no_file ? Json() : Json(bytes);
  print_json(session, result);
}

void open_page(Session& session, const fs::path& page) {
  std::string program = "xdg-open";
  std::string file = fs::absolute(page).string();
  char* arguments[] = {program.data(), file.data(), nullptr};
  pid_t child = 0;
  if (posix_spawnp(&child, program.c_str(), nullptr, nullptr, arguments, environ) != 0) {
    session.err << "fathom: xdg-open not found; open the file yourself\n";
  }
}

}  // namespace fathom
