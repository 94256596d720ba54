#include "engine/cpu/simd.h"

namespace fathom::engine::cpu::FATHOM_ISA {
namespace {

/// core/random.h's philox, repeated here because kernels use no header with code of its own.
inline void philox(std::uint32_t c[4], std::uint32_t k0, std::uint32_t k1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = 0xD2511F53ull * c[0];
    const std::uint64_t second = 0xCD9E8D57ull * c[2];
    const std::uint32_t next0 = static_cast<std::uint32_t>(second >> 32) ^ c[1] ^ k0;
    const std::uint32_t next2 = static_cast<std::uint32_t>(first >> 32) ^ c[3] ^ k1;
    c[1] = static_cast<std::uint32_t>(second);
    c[3] = static_cast<std::uint32_t>(first);
    c[0] = next0;
    c[2] = next2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

}  // namespace

/// The range begins at a multiple of kLanes.
void dropout(const DropoutArgs& args, std::int64_t begin, std::int64_t end) {
  const double threshold = static_cast<double>(args.probability) * 4294967296.0;
  const float kept = 1.0f / (1.0f - args.probability);
  with_type(args.y, [&](auto type) {
    using T = ElementOf<decltype(type)>;
    const T* x = static_cast<const T*>(args.x.data) + begin;
    T* y = static_cast<T*>(args.y.data) + begin;
    for_vectors(end - begin, [&](std::int64_t i, std::int64_t count) {
      float factors[kLanes];
      for (std::int64_t k = 0; k < kLanes; k += 4) {
        const auto block = static_cast<std::uint64_t>((begin + i + k) / 4);
        std::uint32_t words[4] = {
            static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
            static_cast<std::uint32_t>(args.draw), static_cast<std::uint32_t>(args.draw >> 32)};
        philox(words, args.seed, args.stream);
        for (std::int64_t j = 0; j < 4; ++j) {
          factors[k + j] = static_cast<double>(words[j]) >= threshold ? kept : 0.0f;
        }
      }
      put(y + i, load_upto(x + i, count) * load(factors), count, args.accumulate);
    });
  });
}

}  // namespace fathom::engine::cpu::FATHOM_ISA
