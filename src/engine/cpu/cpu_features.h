// What this processor can do, and the choice of kernels that follows.
#pragma once

#include "core/enum_names.h"
#include "engine/cpu/kernels.h"

namespace fathom::engine {

enum class Isa : std::uint8_t { portable, avx2, avx512, avx512bf16 };
constexpr auto enum_names(Isa) {
  return std::array{"portable", "avx2", "avx512", "avx512bf16"};
}

/// The best instruction set that both this build and this processor have.
Isa best_isa();
bool has_isa(Isa isa);
/// Whether bf16 GEMMs run in hardware; without it they work, but slowly.
bool has_bf16_gemms();

namespace cpu {
const Kernels& kernels_for(Isa isa);
}

}  // namespace fathom::engine
