#include "core/enum_names.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/text.h"

namespace fathom::detail {

void refuse_name(std::string_view name, std::string_view what,
                 const std::vector<std::string>& known) {
  throw ConfigError(fmt::format("{} '{}' is not known.{} Choose from: {}", what, printable(name),
                                did_you_mean(name, known), join(known, ", ")));
}

}  // namespace fathom::detail
