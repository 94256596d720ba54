// Parsing of JSON files with errors that name file and place. Include only in .cpp files.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace fathom {

/// DataError when the text is no JSON; `origin` names it in the message.
nlohmann::json parse_json(std::string_view text, const std::string& origin);
nlohmann::json read_json_file(const std::filesystem::path& path);

}  // namespace fathom
