// In its own header, so that kernels can use it without the standard library (cpu/kernels.h).
#pragma once

#include <cstdint>

namespace fathom::engine {

enum class ActivationKind : std::uint8_t { relu, gelu, gelu_tanh, swiglu };

}  // namespace fathom::engine
