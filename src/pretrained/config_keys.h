// Values of a config.json by key, and which keys were asked for.
//
// A key that was not asked for and is not known to leave the function unchanged is refused by name:
// a model must not be measured without a part that its config asks for.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::pretrained {

/// Absent and null are the same; another type is a ConfigError that names the key.
class ConfigKeys {
 public:
  /// Both must outlive it.
  ConfigKeys(const nlohmann::json& json, const std::string& origin)
      : json_(json), origin_(origin) {}

  [[noreturn]] void fail(std::string_view key, const std::string& what) const;
  const nlohmann::json* find(std::string_view key) const;
  double number(std::string_view key, double fallback) const;
  std::int64_t whole(std::string_view key, std::int64_t fallback) const;
  /// A whole number that must be there and not zero.
  std::int64_t size(std::string_view key) const;
  bool flag(std::string_view key, bool fallback) const;
  std::string text(std::string_view key, const std::string& fallback) const;
  std::vector<double> numbers(std::string_view key) const;
  ConfigKeys inside(const nlohmann::json& object) const { return {object, origin_}; }

  /// ConfigError for the first key that was not asked for and may change what a model computes.
  void refuse_unread() const;

 private:
  const nlohmann::json& json_;
  const std::string& origin_;
  mutable std::set<std::string, std::less<>> asked_;
};

}  // namespace fathom::pretrained
