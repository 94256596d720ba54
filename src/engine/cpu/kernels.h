// The vectorised kernels as a table of functions, one table per instruction set. A kernel works on
// a range of rows (or elements) and knows nothing of threads; cpu::bind assigns the ranges.
//
// Kernels are compiled once per instruction set from ops/*/*_simd.cpp, which include no standard
// headers with code in them: the linker could otherwise keep a copy of that code that this machine
// cannot run.
#pragma once

#include <cstdint>

#include "engine/ops/activation/activation_kind.h"
#include "engine/ops/attention/attention_kind.h"
#include "engine/ops/keys/keys_kind.h"

namespace fathom::engine::cpu {

/// Memory of f32 or bf16.
struct Operand {
  void* data = nullptr;
  bool bf16 = false;
  explicit operator bool() const { return data != nullptr; }
};

struct NormArgs {
  Operand x, branch, r, y;
  const float* gain;
  const float* bias;
  float* stats;
  std::int64_t width;
  bool rms;
  float epsilon, stream_scale, branch_scale;
};

struct NormBackwardArgs {
  Operand dy, incoming, r, dx, d_branch;
  const float* stats;
  const float* gain;
  std::int64_t width;
  bool rms, accumulate_dx, accumulate_branch;
  float stream_scale, branch_scale;
};

struct ActivationArgs {
  Operand u, y;        // forward
  Operand dy, du;      // backward
  std::int64_t width;  // of y
  ActivationKind kind;
  bool accumulate;
};

/// out = a x + b y, or out += when accumulate; y may be absent.
struct CombineArgs {
  Operand x, y, out;
  float a, b;
  bool accumulate;
};

struct EmbedArgs {
  const std::int32_t* tokens;
  const float* table;
  const float* positions;  // or null
  Operand y;
  std::int64_t width, period;
  float scale;
};

/// Gradient of the table for the columns [begin, end), over all rows in order.
struct EmbedBackwardArgs {
  const std::int32_t* tokens;
  Operand dy;
  float* d_table;
  std::int64_t rows, width;
  float scale;
};

/// sums[period, width] (+)= factor * sum over rows n = t mod period; `begin, end` are values of t.
struct PeriodSumArgs {
  Operand x;
  float* sums;
  std::int64_t rows, width, period;
  float factor;
  bool accumulate;
};

struct DropoutArgs {
  Operand x, y;
  float probability;
  std::uint32_t seed, stream;
  std::uint64_t draw;
  bool accumulate;
};

/// Rows of z = x W^T to logits scale z + bias (in place), losses and, on the logits' memory
/// or elsewhere, scale dz = scale loss_scale (softmax - onehot).
struct SoftmaxLossArgs {
  float* logits;
  const float* bias;  // or null
  Operand dz;         // absent: losses only
  const std::int32_t* targets;
  float* losses;
  std::int64_t classes;
  float scale, loss_scale;
};

struct AdamWArgs {
  float* parameter;
  const float* gradient;
  float* m;
  float* v;
  float beta1, beta2, learning_rate, decay_rate, epsilon, gradient_factor, correction1, correction2;
};

struct KeyArgs {
  Operand x, y;    // forward
  Operand dy, dx;  // backward
  const float* weight;
  float* d_weight;
  std::int64_t weight_rows, weight_cols;
  std::int64_t batch, context, heads, key_heads, head_size;
  KeyMap map;
  bool accumulate;  // d_weight
};

struct AttentionArgs {
  Operand qkv, y, dy, d_qkv;
  float* stats;
  const float* rotations;  // [T, K] cos then sin for rotary positions, or null
  // AttentionPattern's tables, or null: the mask and the window decide.
  const std::uint64_t* visible;
  const BlockView* views;
  const float* directions;  // [features, K] of random features, or null
  std::int64_t features;
  std::int64_t batch, context, heads, key_heads, head_size, window;
  AttentionKind kind;
  MaskKind mask;
  float scale;
  /// Polled before every block of queries; true skips the rest. Null: never polled.
  bool (*stop)(void*);
  void* stop_context;
};

struct Kernels {
  void (*norm_forward)(const NormArgs&, std::int64_t begin, std::int64_t end);
  /// Also adds the rows' share of d_gain and d_bias to the given sums (either may be null).
  void (*norm_backward)(const NormBackwardArgs&, std::int64_t begin, std::int64_t end,
                        float* gain_sum, float* bias_sum);
  void (*activation_forward)(const ActivationArgs&, std::int64_t begin, std::int64_t end);
  void (*activation_backward)(const ActivationArgs&, std::int64_t begin, std::int64_t end);
  void (*combine)(const CombineArgs&, std::int64_t begin, std::int64_t end);
  void (*embed_forward)(const EmbedArgs&, std::int64_t begin, std::int64_t end);
  void (*embed_backward)(const EmbedBackwardArgs&, std::int64_t begin, std::int64_t end);
  void (*period_sum)(const PeriodSumArgs&, std::int64_t begin, std::int64_t end);
  /// period_sum with period 1, for the columns [begin, end).
  void (*column_sum)(const PeriodSumArgs&, std::int64_t begin, std::int64_t end);
  void (*dropout)(const DropoutArgs&, std::int64_t begin, std::int64_t end);
  void (*softmax_loss)(const SoftmaxLossArgs&, std::int64_t begin, std::int64_t end);
  void (*adamw)(const AdamWArgs&, std::int64_t begin, std::int64_t end);
  double (*sum_of_squares)(const float*, std::int64_t count);
  void (*map_keys_forward)(const KeyArgs&, std::int64_t begin, std::int64_t end);
  void (*map_keys_backward)(const KeyArgs&, std::int64_t begin, std::int64_t end);
  /// Gradients of the weight's rows [begin, end); for `smear`, of its elements.
  void (*map_keys_weight)(const KeyArgs&, std::int64_t begin, std::int64_t end);
  /// One task is one (sequence, key head); scratch is sized by attention_scratch_floats.
  void (*attention_forward)(const AttentionArgs&, std::int64_t task, float* scratch);
  void (*attention_backward)(const AttentionArgs&, std::int64_t task, float* scratch);
  std::int64_t (*attention_scratch_floats)(const AttentionArgs&);
};

namespace portable {
const Kernels& kernels();
}
namespace avx2 {
const Kernels& kernels();
}
namespace avx512 {
const Kernels& kernels();
}
namespace avx512bf16 {
const Kernels& kernels();
}

}  // namespace fathom::engine::cpu
