#include "cli/damage.h"

#include <fmt/format.h>

#include "cli/command_line.h"
#include "core/text.h"

namespace fathom {

void tell_damage(Session& session, const std::vector<std::string>& damage) {
  constexpr std::size_t kMost = 20;
  constexpr std::size_t kLongest = 500;
  for (std::size_t i = 0; i < damage.size() && i < kMost; ++i) {
    session.err << "fathom: damage: " << printable(damage[i], kLongest) << "\n";
  }
  if (damage.size() > kMost) {
    session.err << fmt::format("fathom: damage: and {} more\n", damage.size() - kMost);
  }
}

}  // namespace fathom
