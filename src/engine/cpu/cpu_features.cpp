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
  }
  return false;
}

Isa best_isa() {
  if (has_isa(Isa::avx512)) return Isa::avx512;
  return has_isa(Isa::avx2) ? Isa::avx2 : Isa::portable;
}

bool has_bf16_products() {
  return __builtin_cpu_supports("avx512bf16");
}

std::string name_of(Isa isa) {
  return isa == Isa::avx512 ? "avx512" : isa == Isa::avx2 ? "avx2" : "portable";
}

const cpu::Kernels& cpu::kernels_for(Isa isa) {
  if (!has_isa(isa)) throw DeviceError("this processor has no " + name_of(isa) + " instructions");
  switch (isa) {
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
