// The list of all experiments; each is defined in the folder of its subject.
#include "lab/attention_matrices/matrix_experiments.h"
#include "lab/collapse/collapse_experiments.h"
#include "lab/frame/experiment.h"
#include "lab/hard_attention/hard_attention_experiments.h"
#include "lab/hops/hop_experiments.h"
#include "lab/perturbation/perturbation_experiment.h"
#include "lab/ranks/rank_experiments.h"
#include "lab/trained/trained_experiments.h"

namespace fathom::lab {

const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> all{
      rank_collapse_experiment(),
      masked_collapse_experiment(),
      skip_collapse_experiment(),
      path_length_experiment(),
      hard_attention_experiment(),
      star_free_experiment(),
      brasp_experiment(),
      hop_experiment(),
      connectivity_experiment(),
      low_rank_bottleneck_experiment(),
      softmax_hull_experiment(),
      admin_experiment(),
      theorem_one_experiment(),
      theorem_two_experiment(),
      theorem_two_upper_experiment(),
      corollary_experiment(),
      invariance_experiment(),
      residual_experiment(),
      head_experiment(),
      defect_experiment(),
      partial_width_experiment(),
      convnet_experiment(),
      recurrent_experiment(),
      induction_experiment(),
      hop_training_experiment(),
      cycle_training_experiment(),
      counting_training_experiment(),
      sublayer_order_experiment(),
      admin_training_experiment(),
      two_regimes_experiment(),
      data_depth_experiment(),
      auto_sizing_experiment(),
      softmax_free_experiment(),
      sliced_experiment(),
      wide_deep_experiment(),
      head_size_experiment(),
      head_roles_experiment(),
  };
  return all;
}

}  // namespace fathom::lab
