#include "engine/cpu/cpu_features.h"

#include "core/error.h"

namespace fathom::engine {

bool has_isa(Isa isa) {
  switch (isa) {
    case Isa::portable:
      return true;
    case Isa::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case Isa::avx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    case Isa::avx512bf16:
      return has_isa(Isa::avx512) && __builtin_cpu_supports("avx512bf16");
  }
  return false;
}

Isa best_isa() {
  for (const Isa isa : {Isa::avx512bf16, Isa::avx512, Isa::avx2}) {
    if (has_isa(isa)) return isa;
  }
  return Isa::portable;
}

bool has_bf16_gemms() {
  return __builtin_cpu_supports("avx512bf16");
}

const cpu::Kernels& cpu::kernels_for(Isa isa) {
  if (!has_isa(isa)) throw DeviceError("this processor has no " + to_string(isa) + " instructions");
  switch (isa) {
    case Isa::avx512bf16:
      return avx512bf16::kernels();
    case Isa::avx512:
      return avx512::kernels();
    case Isa::avx2:
      return avx2::kernels();
    case Isa::portable:
      break;
  }
  return portable::kernels();
}

}  // namespace fathom::engine
