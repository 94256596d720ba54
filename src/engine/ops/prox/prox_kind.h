// The group penalties of prox.h, in their own header: run specs are read without including any op.
#pragma once

#include <array>
#include <cstdint>

namespace fathom::engine {

enum class ProxKind : std::uint8_t { none, l21, linf1 };
constexpr auto enum_names(ProxKind) {
  return std::array{"none", "l21", "linf1"};
}

}  // namespace fathom::engine
