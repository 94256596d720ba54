#include "engine/plan/lanes.h"

#include "engine/plan/op_cost.h"

namespace fathom::engine {
namespace {

bool makes_only_parameter_gradients(const Op& op) {
  if (const auto* linear = std::get_if<LinearBackward>(&op)) return !linear->dx.exists();
  const auto* embed = std::get_if<EmbedBackward>(&op);
  return embed != nullptr && !embed->d_table.exists();
}

}  // namespace

Lane lane_of(const Op& op, const Tensors& tensors, const DeviceOffers& offers) {
  if (!offers.second_lane || !makes_only_parameter_gradients(op)) return Lane::main;
  return flops_of(op, tensors) > offers.long_gemm_flops ? Lane::main : Lane::side;
}

}  // namespace fathom::engine
