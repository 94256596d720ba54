// By themselves, so that kernels may know them without the standard library (cpu/kernels.h).
#pragma once

#include <cstdint>

namespace fathom::engine {

enum class AttentionKind : std::uint8_t { softmax, none, linear };
enum class MaskKind : std::uint8_t { causal, bidirectional, strict };

}  // namespace fathom::engine
