// The table of this instruction set's kernels.
#include "engine/cpu/simd.h"

namespace fathom::engine::cpu::FATHOM_ISA {

void norm_forward(const NormArgs&, std::int64_t, std::int64_t);
void norm_backward(const NormBackwardArgs&, std::int64_t, std::int64_t, float*, float*);
void activation_forward(const ActivationArgs&, std::int64_t, std::int64_t);
void activation_backward(const ActivationArgs&, std::int64_t, std::int64_t);
void combine(const CombineArgs&, std::int64_t, std::int64_t);
void embed_forward(const EmbedArgs&, std::int64_t, std::int64_t);
void embed_backward(const EmbedBackwardArgs&, std::int64_t, std::int64_t);
void period_sum(const PeriodSumArgs&, std::int64_t, std::int64_t);
void column_sum(const PeriodSumArgs&, std::int64_t, std::int64_t);
void dropout(const DropoutArgs&, std::int64_t, std::int64_t);
void softmax_loss(const SoftmaxLossArgs&, std::int64_t, std::int64_t);
void adamw(const AdamWArgs&, std::int64_t, std::int64_t);
double sum_of_squares(const float*, std::int64_t);
void map_keys_forward(const KeyArgs&, std::int64_t, std::int64_t);
void map_keys_backward(const KeyArgs&, std::int64_t, std::int64_t);
void map_keys_weight(const KeyArgs&, std::int64_t, std::int64_t);
void attention_forward(const AttentionArgs&, std::int64_t, float*);
void attention_backward(const AttentionArgs&, std::int64_t, float*);
std::int64_t attention_scratch_floats(const AttentionArgs&);

const Kernels& kernels() {
  static const Kernels table{norm_forward,
                             norm_backward,
                             activation_forward,
                             activation_backward,
                             combine,
                             embed_forward,
                             embed_backward,
                             period_sum,
                             column_sum,
                             dropout,
                             softmax_loss,
                             adamw,
                             sum_of_squares,
                             map_keys_forward,
                             map_keys_backward,
                             map_keys_weight,
                             attention_forward,
                             attention_backward,
                             attention_scratch_floats};
  return table;
}

}  // namespace fathom::engine::cpu::FATHOM_ISA
