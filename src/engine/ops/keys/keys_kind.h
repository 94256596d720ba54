// In its own header, so that kernels can use it without the standard library (cpu/kernels.h).
#pragma once

#include <cstdint>

namespace fathom::engine {

enum class KeyMap : std::uint8_t { smear, project, synthesise, sort };
inline constexpr int kSinkhornRounds = 8;

}  // namespace fathom::engine
