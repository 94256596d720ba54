#include "engine/plan/device_offers.h"

#include <fmt/format.h>

#include <limits>

#include "core/error.h"
#include "core/text.h"

namespace fathom::engine {
namespace {

constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
constexpr int kMultiprocessorsH200 = 132;

}  // namespace

DeviceOffers generic_gpu_offers() {
  DeviceOffers offers;
  offers.name = "generic";
  offers.byte_slopes = offers.narrow_gradients = true;
  offers.late_bias = offers.narrow_biases = true;
  // Alongside other work, weight gradients of 100 GFLOP and more (width 512) made steps 0.9 %
  // slower; those of 9 GFLOP (width 128) made them 2.7 % faster, at width 64 5.7 %.
  offers.second_lane = true;
  offers.long_gemm_flops = 50e9;
  offers.bias_gradient.activation = true;
  offers.bias_gradient.norm_widest = 2048;
  offers.bias_gradient.norm_multiple = 8;
  offers.bias_gradient.norm_most_rows = 1 << 24;
  return offers;
}

DeviceOffers hopper_offers(int multiprocessors) {
  DeviceOffers offers = generic_gpu_offers();
  offers.name = "hopper";
  // A block has 128 columns of the wide side, and at least one block is resident for each.
  offers.activation = {.offered = true,
                       .rows_multiple = 64,
                       .wide_multiple = 128,
                       .other_multiple = 8,
                       .widest = std::int64_t{128} * multiprocessors};
  // Narrow rows need all of the weights in shared memory; wider ones stream them.
  offers.norm = {.forward = {{64, 1408}, {128, 704}, {256, kAny}},
                 .backward = {{64, 1344}, {128, 640}, {192, kAny}},
                 .width_multiple = 16,
                 .depth_multiple = 8};
  // The fused backward of attention, whose blocks take one head of a sequence each.
  offers.bias_gradient.attention = {.least_head_size = 17,
                                    .most_head_size = 64,
                                    .least_context = 65,
                                    .least_heads = (multiprocessors + 1) / 2};
  offers.unmeasured_pays = true;
  return offers;
}

std::vector<std::string> offer_names() {
  return {"none", "generic", "hopper"};
}

DeviceOffers find_offers(const std::string& name) {
  if (name == "none") return {};
  if (name == "generic") return generic_gpu_offers();
  if (name == "hopper") return hopper_offers(kMultiprocessorsH200);
  throw ConfigError(fmt::format("offers '{}' are not known.{} Choose from: {}", name,
                                did_you_mean(name, offer_names()), join(offer_names(), ", ")));
}

}  // namespace fathom::engine
