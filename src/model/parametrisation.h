// How initial values, learning rates, weight decay and AdamW's epsilon follow from width and
// depth: standard, muP (arXiv 2203.03466) and CompleteP (arXiv 2505.01618, alpha = 1), the batch
// and run-length corrections of Complete(d)P (arXiv 2512.22382), and the post-norm schemes ADMIN
// (arXiv 2004.08249) and DeepNorm (arXiv 2203.00555).
//
// With m_N = D / base_width and m_L = L / base_layers:
//
//                               standard     muP           CompleteP
//   hidden weight init std      s            s / sqrt m_N  s / sqrt m_N
//   hidden weight LR            1            1 / m_N       m_L^(a-1) / m_N
//   hidden bias, block norm LR  1            1             m_L^(a-1)
//   hidden weight decay         1            m_N           m_N        (times LR it is constant)
//   residual branch             1            1             m_L^(-a)
//   head forward                1            1 / m_N       1 / m_N
//   AdamW epsilon in blocks     1            1 / m_N       m_L^(-a) / m_N
//   epsilon, token table        1            1 / m_N       1 / m_N
//   attention logits            1/sqrt K     8 / K         8 / K      (equal at K = 64)
//
// Only the standard one shrinks the projections that write to the stream, by 1 / sqrt(number of
// sublayers), as GPT-2 does; the others account for depth by the branch factor.
#pragma once

#include "model/model_spec.h"

namespace fathom::model {

enum class Role : std::uint8_t {
  token_table,
  position_table,
  hidden_weight,  // matrices between stream-sized vectors: q, k, ffn up
  branch_output,  // matrices that write to the stream: attention output, ffn down
  value_or_up,    // v and ffn up under DeepNorm
  hidden_bias,
  block_norm,
  final_norm,
  head,
};

struct Scaling {
  double init_std = 0;  // 0 for vectors: they start at a constant
  double lr_multiplier = 1;
  double decay_multiplier = 0;  // 0: no weight decay
  double epsilon_multiplier = 1;
};

/// `fan_in` and `fan_out` matter only for DeepNorm's Xavier initialisation.
Scaling scaling_of(const ModelSpec& spec, Role role, std::int64_t fan_in, std::int64_t fan_out);

double branch_multiplier(const ModelSpec& spec);
/// Factor of the stream in stream_scale x + branch: above 1 for ADMIN and DeepNorm.
double stream_multiplier(const ModelSpec& spec);
double head_multiplier(const ModelSpec& spec);
double attention_scale(const ModelSpec& spec);

/// m_B = batch tokens / base, m_D = total tokens / base: factors for every parameter.
struct RunCorrection {
  double learning_rate = 1;   // sqrt(m_B / m_D)
  double weight_decay = 1;    // sqrt(m_B / m_D)
  double epsilon = 1;         // sqrt(m_D / m_B)
  double one_minus_beta = 1;  // m_B / m_D
};
RunCorrection run_correction(double batch_ratio, double duration_ratio);

}  // namespace fathom::model
