#include "cli/given_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "core/text.h"

namespace fathom {
namespace {

/// Every value of an option as text; a flag that is set has one empty value.
std::vector<std::string> values_of(const OptionTarget& target) {
  return std::visit(
      [](const auto* value) -> std::vector<std::string> {
        using Value = std::remove_cvref_t<decltype(*value)>;
        if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
          return *value;
        } else if constexpr (std::is_same_v<Value, bool>) {
          return *value ? std::vector<std::string>{""} : std::vector<std::string>{};
        } else {
          return {fmt::format("{}", *value)};
        }
      },
      target);
}

}  // namespace

std::string given_options(const Command& command, const Command& fresh,
                          const std::vector<std::string>& skipped) {
  std::vector<std::string> words;
  const auto options = command.options();
  const auto defaults = fresh.options();
  for (std::size_t i = 0; i < options.size(); ++i) {
    const Option& option = *options[i];
    const std::vector<std::string> values = values_of(option.target());
    if (option.names() == "-h,--help" || values == values_of(defaults[i]->target())) continue;
    const std::string name =
        option.is_positional() ? option.label() : "--" + option.long_names().front();
    if (std::find(skipped.begin(), skipped.end(), name) != skipped.end()) continue;
    for (const std::string& value : values) {
      if (!option.is_positional()) words.push_back(name);
      if (!value.empty()) words.push_back(value);
    }
  }
  return join(words, " ");
}

}  // namespace fathom
