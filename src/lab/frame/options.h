// Short forms for the options of experiments.
#pragma once

#include "lab/frame/experiment.h"

namespace fathom::lab {

inline Option integer_option(std::string name, std::int64_t value, std::string placeholder,
                             std::string help, double low, double high) {
  return {std::move(name),        Option::Type::integer, value, nullptr,
          std::move(placeholder), std::move(help),       low,   high};
}

inline Option number_option(std::string name, double value, std::string placeholder,
                            std::string help, double low, double high) {
  return {std::move(name),        Option::Type::number, value, nullptr,
          std::move(placeholder), std::move(help),      low,   high};
}

inline Option text_option(std::string name, std::string value, std::string placeholder,
                          std::string help, std::vector<std::string> words = {}) {
  return {std::move(name),
          Option::Type::text,
          std::move(value),
          nullptr,
          std::move(placeholder),
          std::move(help),
          0,
          0,
          std::move(words)};
}

inline Option flag_option(std::string name, std::string help) {
  return {std::move(name), Option::Type::flag, false, nullptr, "", std::move(help)};
}

/// --seeds: how often to draw; it does not change the question.
inline Option seeds_option(std::int64_t value, std::int64_t quick) {
  Option option = integer_option("seeds", value, "N", "Random draws", 1, 100000);
  option.quick = quick;
  option.setup = false;
  return option;
}

}  // namespace fathom::lab
