#include "engine/cpu/simd.h"

namespace fathom::engine::cpu::FATHOM_ISA {
namespace {

template <class TX, class TB, class TY>
void forward_row(const NormArgs& args, std::int64_t row) {
  const std::int64_t width = args.width;
  const TX* x = static_cast<const TX*>(args.x.data) + row * width;
  if (args.branch) {
    const TB* branch = static_cast<const TB*>(args.branch.data) + row * width;
    TX* r = static_cast<TX*>(args.r.data) + row * width;
    for_vectors(width, [&](std::int64_t i, std::int64_t count) {
      store_upto(r + i,
                 load_upto(x + i, count) * args.stream_scale +
                     load_upto(branch + i, count) * args.branch_scale,
                 count);
    });
    x = r;
  }
  const float inverse_width = 1.0f / static_cast<float>(width);
  float mean = 0;
  if (!args.rms) {
    Vec total{};
    for_vectors(width,
                [&](std::int64_t i, std::int64_t count) { total += load_upto(x + i, count); });
    mean = sum(total) * inverse_width;
  }
  Vec squares{};
  float tail = 0;  // the empty lanes of the last part would count as (0 - mean)^2
  for_vectors(width, [&](std::int64_t i, std::int64_t count) {
    const Vec centred = load_upto(x + i, count) - mean;
    squares += centred * centred;
    tail = static_cast<float>(kLanes - count) * mean * mean;
  });
  const float inverse =
      1.0f / __builtin_sqrtf((sum(squares) - tail) * inverse_width + args.epsilon);
  args.stats[2 * row] = mean;
  args.stats[2 * row + 1] = inverse;
  TY* y = static_cast<TY*>(args.y.data) + row * width;
  for_vectors(width, [&](std::int64_t i, std::int64_t count) {
    Vec value = (load_upto(x + i, count) - mean) * inverse;
    if (args.gain) value = value * load_upto(args.gain + i, count);
    if (args.bias) value = value + load_upto(args.bias + i, count);
    store_upto(y + i, value, count);
  });
}

template <class TX, class TB, class TY>
void backward_row(const NormBackwardArgs& args, std::int64_t row, float* gain_sum,
                  float* bias_sum) {
  const std::int64_t width = args.width, start = row * width;
  const TX* r = static_cast<const TX*>(args.r.data) + start;
  const TY* dy = static_cast<const TY*>(args.dy.data) + start;
  const float mean = args.stats[2 * row], inverse = args.stats[2 * row + 1];
  Vec total_g{}, total_gh{};
  for_vectors(width, [&](std::int64_t i, std::int64_t count) {
    const Vec d = load_upto(dy + i, count);
    const Vec hat = (load_upto(r + i, count) - mean) * inverse;
    const Vec g = args.gain ? d * load_upto(args.gain + i, count) : d;
    total_g += g;
    total_gh += g * hat;
    if (gain_sum) put(gain_sum + i, d * hat, count, true);
    if (bias_sum) put(bias_sum + i, d, count, true);
  });
  const float mean_g = args.rms ? 0.0f : sum(total_g) / static_cast<float>(width);
  const float mean_gh = sum(total_gh) / static_cast<float>(width);
  const TX* incoming = args.incoming ? static_cast<const TX*>(args.incoming.data) + start : nullptr;
  TX* dx = args.dx ? static_cast<TX*>(args.dx.data) + start : nullptr;
  TB* d_branch = args.d_branch ? static_cast<TB*>(args.d_branch.data) + start : nullptr;
  for_vectors(width, [&](std::int64_t i, std::int64_t count) {
    const Vec d = load_upto(dy + i, count);
    const Vec hat = (load_upto(r + i, count) - mean) * inverse;
    const Vec g = args.gain ? d * load_upto(args.gain + i, count) : d;
    Vec dr = (g - mean_g - hat * mean_gh) * inverse;
    if (incoming) dr += load_upto(incoming + i, count);
    if (dx) put(dx + i, dr * args.stream_scale, count, args.accumulate_dx);
    if (d_branch) put(d_branch + i, dr * args.branch_scale, count, args.accumulate_branch);
  });
}

}  // namespace

void norm_forward(const NormArgs& args, std::int64_t begin, std::int64_t end) {
  with_type(args.x, [&](auto x) {
    with_type(args.branch, [&](auto branch) {
      with_type(args.y, [&](auto y) {
        for (std::int64_t row = begin; row < end; ++row) {
          forward_row<ElementOf<decltype(x)>, ElementOf<decltype(branch)>, ElementOf<decltype(y)>>(
              args, row);
        }
      });
    });
  });
}

void norm_backward(const NormBackwardArgs& args, std::int64_t begin, std::int64_t end,
                   float* gain_sum, float* bias_sum) {
  with_type(args.r, [&](auto x) {
    with_type(args.d_branch, [&](auto branch) {
      with_type(args.dy, [&](auto y) {
        for (std::int64_t row = begin; row < end; ++row) {
          backward_row<ElementOf<decltype(x)>, ElementOf<decltype(branch)>, ElementOf<decltype(y)>>(
              args, row, gain_sum, bias_sum);
        }
      });
    });
  });
}

}  // namespace fathom::engine::cpu::FATHOM_ISA
