#include "architecture/rules.h"

#include <algorithm>
#include <functional>
#include <sstream>
#include <stdexcept>

namespace fathom::architecture {
namespace {

/// "engine/plan" of "engine/plan/op.h"; empty for a file without a folder.
std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::string first_folder(const std::string& path) {
  const std::size_t slash = path.find('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::string join(const std::vector<std::string>& names, const char* separator) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : separator) + name;
  return text;
}

std::string join(const Names& names) {
  return names.empty() ? "nothing" : join(std::vector(names.begin(), names.end()), ", ");
}

bool is_at_or_below(const std::string& folder, const std::string& allowed) {
  return folder == allowed || folder.starts_with(allowed + "/");
}

}  // namespace

Rules Rules::parse(const std::string& text) {
  Rules rules;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) throw std::runtime_error("no colon in the rule: " + line);
    std::istringstream head(line.substr(0, colon));
    std::istringstream tail(line.substr(colon + 1));
    Names used;
    for (std::string name; tail >> name;) used.insert(name);
    std::string kind, name;
    head >> kind >> name;
    if (kind == "part") {
      rules.parts.emplace_back(name, used);
    } else if (kind == "users") {
      rules.users[name] = used;
    } else if (name.empty() && !kind.empty()) {
      rules.rooms[kind] = used;
    } else {
      throw std::runtime_error("not a rule: " + line);
    }
  }
  return rules;
}

std::vector<std::string> find_cycle(const std::map<std::string, Names>& rooms) {
  Names finished;
  std::vector<std::string> path;
  const std::function<bool(const std::string&)> visit = [&](const std::string& room) {
    const auto seen = std::find(path.begin(), path.end(), room);
    if (seen != path.end()) {
      path.erase(path.begin(), seen);
      path.push_back(room);
      return true;
    }
    if (finished.contains(room)) return false;
    path.push_back(room);
    if (const auto found = rooms.find(room); found != rooms.end()) {
      for (const std::string& used : found->second) {
        if (visit(used)) return true;
      }
    }
    path.pop_back();
    finished.insert(room);
    return false;
  };
  for (const auto& [room, uses] : rooms) {
    if (visit(room)) return path;
  }
  return {};
}

bool matches(const std::string& path, const std::string& pattern) {
  if (pattern.empty()) return path.empty();
  if (pattern.front() == '*') {
    const std::string rest = pattern.substr(1);
    for (std::size_t taken = 0; taken <= path.size(); ++taken) {
      if (matches(path.substr(taken), rest)) return true;
      if (taken < path.size() && path[taken] == '/') return false;
    }
    return false;
  }
  return !path.empty() && path.front() == pattern.front() &&
         matches(path.substr(1), pattern.substr(1));
}

std::vector<std::string> quoted_includes(const std::string& source) {
  std::vector<std::string> includes;
  std::istringstream lines(source);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t start = line.find_first_not_of(" \t");
    if (start == std::string::npos || line.compare(start, 8, "#include") != 0) continue;
    const std::size_t open = line.find('"', start);
    const std::size_t close = line.find('"', open + 1);
    if (open == std::string::npos || close == std::string::npos) continue;
    includes.push_back(line.substr(open + 1, close - open - 1));
  }
  return includes;
}

std::string check_room_include(const Rules& rules, const std::string& file,
                               const std::string& include) {
  const std::string room = first_folder(file), used = first_folder(include);
  const auto rule = rules.rooms.find(room);
  if (rule == rules.rooms.end()) return file + ": src/" + room + " is not a room";
  if (used == room || rule->second.contains(used)) return "";
  return file + " includes " + include + ", but " + room + " may use " + join(rule->second);
}

std::string check_part_include(const Rules& rules, const std::string& file,
                               const std::string& include) {
  const std::string room = first_folder(file);
  const bool has_parts = std::any_of(rules.parts.begin(), rules.parts.end(), [&](const auto& part) {
    return first_folder(part.first) == room;
  });
  if (!has_parts || first_folder(include) != room) return "";
  for (const auto& [pattern, uses] : rules.parts) {
    if (!matches(file, pattern)) continue;
    const std::string used = folder_of(include);
    // The room's own folder means its files, not all that lies below it.
    const bool allowed =
        used == folder_of(file) || std::any_of(uses.begin(), uses.end(), [&](const auto& name) {
          return name == room ? used == room : is_at_or_below(used, name);
        });
    if (allowed) return "";
    return file + " includes " + include + ", but " + pattern + " may use " + join(uses);
  }
  return file + ": no part of " + room + " has a rule for this file";
}

std::string check_user_include(const Rules& rules, const std::string& file,
                               const std::string& include) {
  const std::string used = first_folder(include);
  if (!rules.rooms.contains(used)) return "";  // a helper beside the file
  const std::string folder = folder_of(file);
  const auto user = rules.users.find(folder);
  Names allowed = user == rules.users.end() ? Names{} : user->second;
  if (folder.starts_with("tests/")) {
    const std::string room = first_folder(folder.substr(6) + "/");
    if (const auto rule = rules.rooms.find(room); rule != rules.rooms.end()) {
      allowed.insert(room);
      allowed.insert(rule->second.begin(), rule->second.end());
    }
  }
  if (allowed.contains(used)) return "";
  return file + " includes " + include + ", but " + folder + " may use " + join(allowed);
}

std::vector<std::string> source_files(const std::filesystem::path& root, const std::string& below) {
  const Names endings{".h", ".cpp", ".cu", ".cuh"};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / below)) {
    if (entry.is_regular_file() && endings.contains(entry.path().extension().string())) {
      files.push_back(std::filesystem::relative(entry.path(), root).string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace fathom::architecture
