#include "core/toml_reader.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <set>
#include <sstream>

#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "core/toml_file.h"

namespace fathom {

struct TomlReader::State {
  std::shared_ptr<const toml::table> root;  // keeps `table` alive
  const toml::table* table = nullptr;
  std::string origin;
  std::string path;  // "a.b." for sub-tables
  std::set<std::string> asked;
};

namespace {

std::string place(const std::string& origin, const toml::source_region& region) {
  if (region.begin.line == 0) return origin + " with settings";  // a value that is in no file
  return fmt::format("{}:{}:{}", origin, region.begin.line, region.begin.column);
}

/// Keys and the parser's own messages may hold line ends; an error is one line.
ConfigError error_at(const std::string& origin, const toml::source_region& region,
                     std::string_view what) {
  constexpr std::size_t kLimit = 1000;
  return ConfigError(fmt::format("{}: {}", place(origin, region), printable(what, kLimit)));
}

}  // namespace

TomlReader::TomlReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
TomlReader::TomlReader(TomlReader&&) noexcept = default;
TomlReader::~TomlReader() = default;

namespace {

/// toml++ recurses once for every part of a dotted key.
constexpr std::size_t kMostParts = 1000;

/// Refuses a key that would exhaust the parser's stack. Values are not distinguished from keys: no
/// string in a spec has that many dots in a row either.
void refuse_long_keys(std::string_view text, const std::string& origin) {
  std::size_t line = 1, dots = 0;
  for (const char c : text) {
    line += c == '\n';
    dots = std::string_view("\n=,[]{}").find(c) == std::string_view::npos ? dots + (c == '.') : 0;
    if (dots > kMostParts) {
      throw ConfigError(
          fmt::format("{}:{}: a key of more than {} parts", origin, line, kMostParts));
    }
  }
}

/// Puts "a.b=value" into the tree.
void apply_setting(toml::table& root, const std::string& setting) {
  const auto equals = setting.find('=');
  const std::vector<std::string> path = split(setting.substr(0, equals), '.');
  const bool named =
      std::none_of(path.begin(), path.end(), [](const auto& p) { return p.empty(); });
  if (equals == std::string::npos || !named) {
    throw ConfigError(fmt::format("setting '{}' must look like table.key=value", setting));
  }
  if (path.size() > kMostParts) {
    throw ConfigError(fmt::format("a setting names a key of more than {} parts", kMostParts));
  }
  toml::table* table = &root;
  for (std::size_t i = 0; i + 1 < path.size(); ++i) {
    toml::node* next = &table->insert(path[i], toml::table{}).first->second;
    table = next->as_table();
    if (table == nullptr) {
      throw ConfigError(fmt::format("setting '{}': {} is not a table", setting, path[i]));
    }
  }
  const std::string value = setting.substr(equals + 1);
  refuse_long_keys(value, "a setting");
  try {
    const toml::table parsed = toml::parse("value = " + value);
    if (parsed.size() != 1)
      throw ConfigError(fmt::format("setting '{}' has more than one value", setting));
    parsed.get("value")->visit(
        [&](const auto& node) { table->insert_or_assign(path.back(), node); });
  } catch (const toml::parse_error&) {
    table->insert_or_assign(path.back(), value);
  }
}

}  // namespace

TomlReader TomlReader::from_file(const std::filesystem::path& path,
                                 const std::vector<std::string>& settings) {
  return from_text(read_text_file(path), path.string(), settings);
}

TomlReader TomlReader::from_text(std::string_view text, std::string origin,
                                 const std::vector<std::string>& settings) {
  auto state = std::make_unique<State>();
  require_toml_checksum(text, origin);
  refuse_long_keys(text, origin);
  try {
    toml::table root = toml::parse(text);
    for (const std::string& setting : settings) apply_setting(root, setting);
    state->root = std::make_shared<const toml::table>(std::move(root));
  } catch (const toml::parse_error& error) {
    throw error_at(origin, error.source(), error.description());
  }
  state->table = state->root.get();
  state->origin = std::move(origin);
  return TomlReader(std::move(state));
}

void TomlReader::fail(const std::string& key, const std::string& what) const {
  const toml::node* node = state_->table->get(key);
  const toml::source_region region = node ? node->source() : state_->table->source();
  throw error_at(state_->origin, region, fmt::format("{}{} {}", state_->path, key, what));
}

bool TomlReader::has(const std::string& key) const {
  return state_->table->contains(key);
}

std::vector<std::string> TomlReader::keys() const {
  std::vector<std::pair<toml::source_index, std::string>> placed;
  for (const auto& [key, node] : *state_->table) {
    placed.emplace_back(node.source().begin.line, std::string(key.str()));
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (auto& [line, name] : placed) names.push_back(std::move(name));
  return names;
}

double TomlReader::number(const std::string& key) {
  state_->asked.insert(key);
  if (!has(key)) fail(key, "is missing; a number is needed");
  const auto value = state_->table->get(key)->value<double>();
  if (!value) fail(key, "must be a number");
  return *value;
}

std::int64_t TomlReader::integer(const std::string& key) {
  state_->asked.insert(key);
  if (!has(key)) fail(key, "is missing; a whole number is needed");
  const auto value = state_->table->get(key)->value_exact<std::int64_t>();
  if (!value) fail(key, "must be a whole number");
  return *value;
}

std::string TomlReader::text(const std::string& key) {
  state_->asked.insert(key);
  if (!has(key)) fail(key, "is missing; it must be a quoted string");
  const auto value = state_->table->get(key)->value_exact<std::string>();
  if (!value) fail(key, "must be a quoted string");
  return *value;
}

bool TomlReader::boolean(const std::string& key) {
  state_->asked.insert(key);
  if (!has(key)) fail(key, "is missing; true or false is needed");
  const auto value = state_->table->get(key)->value_exact<bool>();
  if (!value) fail(key, "must be true or false");
  return *value;
}

double TomlReader::number(const std::string& key, double fallback) {
  state_->asked.insert(key);
  return has(key) ? number(key) : fallback;
}

std::int64_t TomlReader::integer(const std::string& key, std::int64_t fallback) {
  state_->asked.insert(key);
  return has(key) ? integer(key) : fallback;
}

std::string TomlReader::text(const std::string& key, const std::string& fallback) {
  state_->asked.insert(key);
  return has(key) ? text(key) : fallback;
}

bool TomlReader::boolean(const std::string& key, bool fallback) {
  state_->asked.insert(key);
  return has(key) ? boolean(key) : fallback;
}

void TomlReader::refuse_word(const std::string& key, const std::string& given,
                             const std::vector<std::string>& known) const {
  fail(key, fmt::format("'{}' is not one of {}.{}", given, join(known, ", "),
                        did_you_mean(given, known)));
}

std::vector<std::string> TomlReader::list(const std::string& key) {
  state_->asked.insert(key);
  std::vector<std::string> items;
  const toml::node* value = state_->table->get(key);
  if (value == nullptr) return items;
  const auto add = [&](const toml::node& node) {
    if (const auto text = node.value_exact<std::string>()) {
      items.push_back(*text);
    } else if (const auto whole = node.value_exact<std::int64_t>()) {
      items.push_back(std::to_string(*whole));
    } else if (const auto number = node.value_exact<double>()) {
      items.push_back(fmt::format("{}", *number));
    } else {
      fail(key, "must be a list of numbers or texts");
    }
  };
  if (const toml::array* array = value->as_array()) {
    for (const toml::node& node : *array) add(node);
  } else {
    add(*value);
  }
  return items;
}

std::string TomlReader::dump() const {
  std::ostringstream text;
  text << toml::toml_formatter(*state_->table) << "\n";
  return text.str();
}

TomlReader TomlReader::table(const std::string& key) {
  static const toml::table empty;
  state_->asked.insert(key);
  auto state = std::make_unique<State>();
  state->root = state_->root;
  state->origin = state_->origin;
  state->path = state_->path + key + ".";
  state->table = &empty;
  if (const toml::node* node = state_->table->get(key)) {
    if (!node->is_table()) fail(key, fmt::format("must be a table: [{}{}]", state_->path, key));
    state->table = node->as_table();
  }
  return TomlReader(std::move(state));
}

void TomlReader::finish() const {
  const std::vector<std::string> known(state_->asked.begin(), state_->asked.end());
  for (const std::string& key : keys()) {
    if (state_->asked.contains(key)) continue;
    fail(key, fmt::format("is not a known key.{} Known here: {}", did_you_mean(key, known),
                          join(known, ", ")));
  }
}

}  // namespace fathom
