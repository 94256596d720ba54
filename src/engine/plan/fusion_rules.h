// Which neighbouring ops the fusion pass merges: one function for each kind of fused op, which
// returns that op where its rules hold.
#pragma once

#include <optional>

#include "engine/plan/fusion.h"

namespace fathom::engine {

class FusionRules {
 public:
  FusionRules(const Programs& programs, const Tensors& tensors, const std::vector<TensorId>& kept,
              const DeviceOffers& offers);

  /// Whether this activation is the only reader of the Linear's result besides its own backward.
  bool takes_bias(const Linear& linear, const Activation& activation) const;

  std::optional<LinearThenActivation> match(const Linear& linear,
                                            const Activation& activation) const;
  /// `up` makes the u that the activation reads.
  std::optional<LinearBackwardThenActivation> match(const LinearBackward& down,
                                                    const ActivationBackward& activation,
                                                    const LinearBackward& up) const;
  std::optional<LinearThenNorm> match(const Linear& linear, const Norm& norm);
  /// `branch` may be the Linear that made the norm's branch; or null.
  std::optional<LinearBackwardThenNorm> match(const LinearBackward& linear,
                                              const NormBackward& norm,
                                              const LinearBackward* branch);

  /// Whether the maker sums the columns of `linear.dy`, which it makes.
  bool sums_columns(const ActivationBackward& maker, const LinearBackward& linear) const;
  bool sums_columns(const NormBackward& maker, const LinearBackward& linear) const;
  bool sums_columns(const AttentionBackward& maker, const LinearBackward& linear) const;

  const std::vector<LinearNormShape>& unmeasured() const { return unmeasured_; }

 private:
  DType type(TensorId id) const { return tensors_[id].dtype; }
  bool is_bf16_or_none(TensorId id) const { return !id.exists() || type(id) == DType::bf16; }
  bool has_one_reader(TensorId id) const;
  bool fits(const ActivationOffer& offer, std::int64_t rows, std::int64_t wide, std::int64_t other,
            ActivationKind kind) const;
  bool fits(const LinearNormShape& shape) const;
  bool pays(const LinearNormShape& shape);

  const Tensors& tensors_;
  const DeviceOffers& offers_;
  TensorTable<bool> kept_;
  EnumArray<Program, TensorTable<int>> readers_;
  std::vector<LinearNormShape> unmeasured_;
};

/// The part of a LinearBackward that makes only its bias gradient.
LinearBackward bias_gradient_of(const LinearBackward& linear);

}  // namespace fathom::engine
