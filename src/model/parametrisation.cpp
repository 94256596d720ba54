#include "model/parametrisation.h"

#include <cmath>

#include "core/counts.h"

namespace fathom::model {
namespace {

struct Ratios {
  double width, depth;
};

Ratios ratios(const ModelSpec& spec) {
  return {as_double(spec.width) / as_double(spec.base_width),
          as_double(spec.layers) / as_double(spec.base_layers)};
}

double sublayer_count(const ModelSpec& spec) {
  return as_double(spec.sublayers().size());
}

bool in_block(Role role) {
  return role == Role::hidden_weight || role == Role::branch_output || role == Role::value_or_up ||
         role == Role::hidden_bias || role == Role::block_norm;
}

bool is_hidden_matrix(Role role) {
  return role == Role::hidden_weight || role == Role::branch_output || role == Role::value_or_up;
}

bool is_vector(Role role) {
  return role == Role::hidden_bias || role == Role::block_norm || role == Role::final_norm;
}

Scaling standard_scaling(const ModelSpec& spec, Role role, std::int64_t fan_in,
                         std::int64_t fan_out) {
  Scaling scaling;
  scaling.decay_multiplier = is_vector(role) ? 0 : 1;
  scaling.init_std = is_vector(role) ? 0 : spec.init_std;
  if (spec.depth_scheme == DepthScheme::deepnorm && is_hidden_matrix(role)) {
    const double gain = role == Role::hidden_weight
                            ? 1
                            : std::pow(4 * sublayer_count(spec), -0.25);  // (8 L)^(-1/4)
    scaling.init_std = gain * std::sqrt(2.0 / as_double(fan_in + fan_out));
  } else if (role == Role::branch_output && spec.residual && spec.norm == NormPlace::pre) {
    scaling.init_std /= std::sqrt(sublayer_count(spec));
  }
  return scaling;
}

}  // namespace

Scaling scaling_of(const ModelSpec& spec, Role role, std::int64_t fan_in, std::int64_t fan_out) {
  if (spec.parametrisation == Parametrisation::standard) {
    return standard_scaling(spec, role, fan_in, fan_out);
  }
  const Ratios m = ratios(spec);
  const double alpha = spec.depth_alpha;
  const bool completep = spec.parametrisation == Parametrisation::completep;
  Scaling scaling;
  scaling.decay_multiplier = is_vector(role) ? 0 : 1;
  scaling.init_std = is_vector(role) ? 0 : spec.init_std;
  if (in_block(role) && completep) scaling.lr_multiplier = std::pow(m.depth, alpha - 1);
  if (is_hidden_matrix(role)) {
    scaling.init_std /= std::sqrt(m.width);
    scaling.lr_multiplier /= m.width;
    scaling.decay_multiplier = m.width;
  }
  if (in_block(role)) {
    scaling.epsilon_multiplier = (completep ? std::pow(m.depth, -alpha) : 1) / m.width;
  }
  if (role == Role::token_table || role == Role::position_table) {
    scaling.epsilon_multiplier = 1 / m.width;
  }
  return scaling;
}

double branch_multiplier(const ModelSpec& spec) {
  if (spec.parametrisation != Parametrisation::completep) return 1;
  return std::pow(ratios(spec).depth, -spec.depth_alpha);
}

double stream_multiplier(const ModelSpec& spec) {
  const double n = sublayer_count(spec);
  switch (spec.depth_scheme) {
    case DepthScheme::none:
      return 1;
    case DepthScheme::admin:
      return std::sqrt((n + 1) / std::log(n + 1) - 1);
    case DepthScheme::deepnorm:
      return std::pow(n, 0.25);  // (2 L)^(1/4) with n = 2 L sublayers
  }
  return 1;
}

double head_multiplier(const ModelSpec& spec) {
  return spec.parametrisation == Parametrisation::standard ? 1 : 1 / ratios(spec).width;
}

double attention_scale(const ModelSpec& spec) {
  const auto size = as_double(spec.resolved_head_size());
  return spec.parametrisation == Parametrisation::standard ? 1 / std::sqrt(size) : 8 / size;
}

RunCorrection run_correction(double batch_ratio, double duration_ratio) {
  const double root = std::sqrt(batch_ratio / duration_ratio);
  return {root, root, 1 / root, batch_ratio / duration_ratio};
}

}  // namespace fathom::model
