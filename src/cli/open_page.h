// What commands do with a page they wrote: say where it is, show it.
#pragma once

#include <filesystem>
#include <string>

#include "cli/command_line.h"

namespace fathom {

struct PageOutput {
  std::filesystem::path path;  // "-": standard output
  bool open = false;           // in the browser
  bool json = false;
};

/// Writes a page, says where it is and opens it if asked.
void write_page(Session& session, const std::string& kind, const PageOutput& output,
                const std::string& page);

/// The page's path, or as JSON path and bytes.
void print_page(Session& session, const std::string& kind, const std::filesystem::path& page,
                bool json);

/// Opens the page in the desktop's browser and does not wait for it.
void open_page(Session& session, const std::filesystem::path& page);

}  // namespace fathom
