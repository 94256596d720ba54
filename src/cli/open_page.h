// What commands do with a page they wrote: say where it is, show it.
#pragma once

#include <filesystem>
#include <string>

#include "cli/command_line.h"

namespace fathom {

/// The page's path, or as JSON path and bytes.
void print_page(Session& session, const std::string& kind, const std::filesystem::path& page,
                bool json);

/// Hands the page to the desktop's browser and does not wait for it.
void open_page(Session& session, const std::filesystem::path& page);

}  // namespace fathom
