#include "engine/cpu/simd.h"

namespace fathom::engine::cpu::FATHOM_ISA {

void embed_forward(const EmbedArgs& args, std::int64_t begin, std::int64_t end) {
  with_type(args.y, [&](auto type) {
    for (std::int64_t n = begin; n < end; ++n) {
      const float* row = args.table + args.tokens[n] * args.width;
      const float* position =
          args.positions ? args.positions + (n % args.period) * args.width : nullptr;
      auto* y = static_cast<ElementOf<decltype(type)>*>(args.y.data) + n * args.width;
      for_vectors(args.width, [&](std::int64_t i, std::int64_t count) {
        Vec value = load_upto(row + i, count) * args.scale;
        if (position) value += load_upto(position + i, count);
        store_upto(y + i, value, count);
      });
    }
  });
}

void embed_backward(const EmbedBackwardArgs& args, std::int64_t begin, std::int64_t end) {
  with_type(args.dy, [&](auto type) {
    for (std::int64_t n = 0; n < args.rows; ++n) {
      const auto* dy =
          static_cast<const ElementOf<decltype(type)>*>(args.dy.data) + n * args.width + begin;
      float* row = args.d_table + args.tokens[n] * args.width + begin;
      for_vectors(end - begin, [&](std::int64_t i, std::int64_t count) {
        put(row + i, load_upto(dy + i, count) * args.scale, count, true);
      });
    }
  });
}

}  // namespace fathom::engine::cpu::FATHOM_ISA
