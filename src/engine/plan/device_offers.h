// What a device offers to a plan, as plain data: which ops it runs as one kernel and up to which
// sizes, and what may run concurrently. The fusion pass (fusion.h) knows nothing else about a
// device, so a plan for a GPU can be made, printed and tested on a machine without one.
//
// Shapes: a Linear reads [rows, ins] and writes [rows, outs]. All fused GEMMs are bf16.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fathom::engine {

/// LinearThenActivation and LinearBackwardThenActivation, which share the slopes.
struct ActivationOffer {
  bool offered = false;
  std::int64_t rows_multiple = 1;
  std::int64_t wide_multiple = 1;   // of the side the activation is on
  std::int64_t other_multiple = 1;  // of the other: what the GEMM sums over
  std::int64_t widest = 0;          // of the side the activation is on
};

/// LinearThenNorm and LinearBackwardThenNorm: a thread block holds whole rows.
struct NormOffer {
  /// Rows up to `widest` fuse with GEMMs that sum over up to `deepest`.
  struct Limit {
    std::int64_t widest = 0, deepest = 0;
  };
  std::vector<Limit> forward, backward;  // by increasing width; empty: not offered
  std::int64_t width_multiple = 1, depth_multiple = 1;
};

/// WithBiasGradient: backward ops that sum the columns of what they make.
struct BiasGradientOffer {
  bool activation = false;
  std::int64_t norm_widest = 0, norm_multiple = 1, norm_most_rows = 0;
  struct {
    std::int64_t least_head_size = 1, most_head_size = 0, least_context = 1;
    std::int64_t least_heads = 0;  // of all sequences together
  } attention;
};

/// A GEMM with a norm, whose fusion is decided by timing: is one kernel faster than two?
struct LinearNormShape {
  std::int64_t rows = 0, width = 0, depth = 0;  // GEMM [rows, depth] x [depth, width]
  bool backward = false;
  bool rms = false;
  bool branch_sums = false;  // backward: with the bias gradient of the branch
  bool branch = false;       // backward: the branch has a gradient tensor of its own

  friend bool operator==(const LinearNormShape&, const LinearNormShape&) = default;
};

struct MeasuredShape {
  LinearNormShape shape;
  bool pays = false;
};

struct DeviceOffers {
  std::string name = "none";
  /// In bf16: activations keep their slopes in bytes, gradients of an f32 stream are bf16.
  bool byte_slopes = false, narrow_gradients = false;
  /// An activation adds the bias of the GEMM before it: the GEMM is faster without.
  bool late_bias = false;
  /// The biases that GEMMs do add have the type of their result.
  bool narrow_biases = false;
  /// Parameter gradients are separate ops and run on a second lane, except GEMMs of at least this
  /// many FLOPs, which fill the device by themselves.
  bool second_lane = false;
  double long_gemm_flops = 0;

  ActivationOffer activation;
  NormOffer norm;
  BiasGradientOffer bias_gradient;
  /// A norm that could be fused is fused only if that was measured to pay.
  std::vector<MeasuredShape> measured;
  bool unmeasured_pays = false;
};

/// What a plan is made for: what the device offers, and a function that measures what cannot be
/// known otherwise. By default no particular device: no ops are fused.
struct PlanTarget {
  DeviceOffers offers;
  /// Answers, in order, whether the fused op pays; may be absent.
  std::function<std::vector<bool>(const std::vector<LinearNormShape>&)> measure;
};

/// Any GPU of compute capability 8.0 or later.
DeviceOffers generic_gpu_offers();
/// A GPU of compute capability 9.0 with this many multiprocessors. What has not been measured is
/// assumed to pay, as it did at every width tried (docs/results/h200-kernels.md).
DeviceOffers hopper_offers(int multiprocessors);

/// By name: an H200's, a generic GPU's or none. ConfigError with the choices.
DeviceOffers find_offers(const std::string& name);
std::vector<std::string> offer_names();

}  // namespace fathom::engine
