// Strict reading of TOML: every key must be asked for, every value has the right type.
//
// An unknown key is an error with the line, the column and the nearest known key, because a
// silently ignored typo costs a training run. Usage:
//
//   TomlReader file = TomlReader::from_file("gpu.toml");
//   profile.peak = file.number("peak_tflops");
//   file.finish();                                  // throws on keys that were not read
//
// Errors from from_file are DataErrors when the file cannot be read, ConfigErrors otherwise.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/enum_names.h"

namespace fathom {

class TomlReader {
 public:
  /// `settings` are "a.b=value" and replace or add values; the value is TOML, or else a string.
  static TomlReader from_file(const std::filesystem::path& path,
                              const std::vector<std::string>& settings = {});
  static TomlReader from_text(std::string_view text, std::string origin,
                              const std::vector<std::string>& settings = {});
  TomlReader(TomlReader&&) noexcept;
  ~TomlReader();

  /// Required values: ConfigError when missing or of another type.
  double number(const std::string& key);
  std::int64_t integer(const std::string& key);
  std::string text(const std::string& key);
  bool boolean(const std::string& key);

  /// Optional values.
  double number(const std::string& key, double fallback);
  std::int64_t integer(const std::string& key, std::int64_t fallback);
  std::string text(const std::string& key, const std::string& fallback);
  bool boolean(const std::string& key, bool fallback);
  /// One of the names of an enum.
  template <NamedEnum Enum>
  Enum word(const std::string& key, Enum fallback) {
    const std::string given = text(key, name_of(fallback));
    if (const auto found = find_enum<Enum>(given)) return *found;
    refuse_word(key, given, list_names<Enum>());
  }

  /// A list, or a single value as a list of one; numbers come as text. Empty when absent.
  std::vector<std::string> list(const std::string& key);

  bool has(const std::string& key) const;
  /// Keys of this table in file order.
  std::vector<std::string> keys() const;
  /// A sub-table [key]; an absent one reads as empty.
  TomlReader table(const std::string& key);

  /// The table as TOML text, settings applied; comments and order of the file are lost.
  std::string dump() const;

  /// Throws on keys that no call above has named.
  void finish() const;
  /// A ConfigError at the place of `key`: "gpu.toml:3:8: peak_tflops must be ...".
  [[noreturn]] void fail(const std::string& key, const std::string& what) const;

 private:
  [[noreturn]] void refuse_word(const std::string& key, const std::string& given,
                                const std::vector<std::string>& known) const;
  struct State;
  explicit TomlReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace fathom
