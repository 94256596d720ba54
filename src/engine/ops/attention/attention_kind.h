// In their own header, so that kernels can use them without the standard library (cpu/kernels.h).
#pragma once

#include <cstdint>

namespace fathom::engine {

enum class AttentionKind : std::uint8_t { softmax, none, linear, performer, normalised };
enum class MaskKind : std::uint8_t { causal, bidirectional, strict };
/// How much of a block of queries and keys is visible (attention_pattern.h).
enum class BlockView : std::uint8_t { none, some, all };

}  // namespace fathom::engine
