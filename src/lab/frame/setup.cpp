#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/memory.h"
#include "core/text.h"
#include "core/units.h"
#include "lab/frame/experiment.h"

namespace fathom::lab {
namespace {

const Json& value_of(const Setup& setup, std::string_view name) {
  const auto found = setup.values.find(std::string(name));
  if (found == setup.values.end()) {
    throw InternalError(fmt::format("the experiment has no option {}", name));
  }
  return *found;
}

template <class Number>
Number parse_number(const Option& option, const std::string& text, const char* what) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  const bool beyond = error == std::errc::result_out_of_range && at == end;
  if (!beyond && (error != std::errc{} || at != end)) {
    throw ConfigError(fmt::format("--{} '{}' is not {}", option.name, printable(text), what));
  }
  const auto number = static_cast<double>(value);
  if (beyond || !(number >= option.low && number <= option.high)) {
    throw ConfigError(fmt::format("--{} must lie between {:g} and {:g}, not {}", option.name,
                                  option.low, option.high, printable(text)));
  }
  return value;
}

Json parse_value(const Option& option, const std::string& text) {
  switch (option.type) {
    case Option::Type::integer:
      return parse_number<std::int64_t>(option, text, "a whole number");
    case Option::Type::number:
      return parse_number<double>(option, text, "a number");
    case Option::Type::flag:
      return true;
    case Option::Type::text:
      break;
  }
  const auto& words = option.words;
  if (!words.empty() && std::find(words.begin(), words.end(), text) == words.end()) {
    throw ConfigError(fmt::format("--{} '{}' is not known.{} Choose from: {}", option.name,
                                  printable(text), did_you_mean(text, words), join(words, ", ")));
  }
  return text;
}

}  // namespace

std::size_t Setup::size(std::string_view name) const {
  return value_of(*this, name).get<std::size_t>();
}
double Setup::number(std::string_view name) const {
  return value_of(*this, name).get<double>();
}
std::string Setup::text(std::string_view name) const {
  return value_of(*this, name).get<std::string>();
}
bool Setup::flag(std::string_view name) const {
  return value_of(*this, name).get<bool>();
}

bool Experiment::has_option(std::string_view name) const {
  return std::any_of(options.begin(), options.end(),
                     [&](const Option& option) { return option.name == name; });
}

const Experiment& find_experiment(std::string_view claim) {
  for (const Experiment& experiment : experiments()) {
    if (experiment.claim == claim) return experiment;
  }
  throw InternalError(fmt::format("claim {} has no experiment", claim));
}

void check_cost(const Setup& setup, const std::string& what, double seconds, double bytes,
                bool shared) {
  const double wall = seconds / (shared ? static_cast<double>(setup.threads) : 1.0);
  if (wall > setup.time_limit) {
    throw ConfigError(
        fmt::format("{} would take about {}, above the limit of {}; take less, or "
                    "raise --time-limit",
                    what, format_seconds(wall), format_seconds(setup.time_limit)));
  }
  if (bytes > usable_memory_bytes()) {
    throw ConfigError(fmt::format("{} would need about {} of memory, above the {} there are", what,
                                  format_bytes(bytes), format_bytes(usable_memory_bytes())));
  }
}

Setup resolve_setup(const Experiment& experiment, const std::vector<GivenOption>& given, bool quick,
                    bool lenient) {
  Setup setup;
  setup.quick = quick;
  for (const Option& option : experiment.options) {
    const bool replaced = quick && !option.quick.is_null();
    setup.values[option.name] = replaced ? option.quick : option.value;
  }
  for (const GivenOption& each : given) {
    const auto& options = experiment.options;
    const auto option = std::find_if(options.begin(), options.end(),
                                     [&](const Option& o) { return o.name == each.name; });
    if (option == options.end()) {
      if (lenient) continue;
      throw ConfigError(fmt::format("{} has no option --{}; see 'fathom lab run {} --help'",
                                    experiment.claim, each.name, experiment.claim));
    }
    setup.values[each.name] = parse_value(*option, each.text);
    setup.own |= option->setup;
  }
  return setup;
}

}  // namespace fathom::lab
