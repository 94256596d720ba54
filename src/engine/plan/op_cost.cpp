#include "engine/plan/op_cost.h"

namespace fathom::engine {
namespace {

/// The FLOPs of each type of op; those without GEMMs count as none.
class Flops {
 public:
  explicit Flops(const Tensors& tensors) : tensors_(tensors) {}

  double operator()(const Linear& op) const { return gemm(op.x, op.weight); }
  double operator()(const LinearBackward& op) const {
    const int gemms = static_cast<int>(op.dx.exists()) + static_cast<int>(op.d_weight.exists());
    return gemms == 0 ? 0 : gemms * gemm(op.x, op.weight);
  }
  double operator()(const HeadLoss& op) const { return gemm(op.x, op.weight); }
  double operator()(const Logits& op) const { return gemm(op.x, op.weight); }
  double operator()(const HeadLossBackward& op) const {
    const int gemms = 1 + static_cast<int>(op.dx.exists()) + static_cast<int>(op.d_weight.exists());
    return gemms * gemm(op.x, op.weight);
  }
  double operator()(const MapKeys& op) const { return projection(op.shape, op.weight); }
  double operator()(const MapKeysBackward& op) const { return 2 * projection(op.shape, op.weight); }
  double operator()(const Attention& op) const { return attention(op.shape); }
  double operator()(const AttentionBackward& op) const { return 2 * attention(op.shape); }
  double operator()(const LinearThenActivation& op) const { return (*this)(op.linear); }
  double operator()(const LinearBackwardThenActivation& op) const { return (*this)(op.linear); }
  double operator()(const LinearThenNorm& op) const { return (*this)(op.linear); }
  double operator()(const LinearBackwardThenNorm& op) const { return (*this)(op.linear); }
  template <class Maker>
  double operator()(const WithBiasGradient<Maker>& op) const {
    return (*this)(op.maker);
  }
  template <class Other>
  double operator()(const Other&) const {
    return 0;
  }

 private:
  double gemm(TensorId x, TensorId weight) const {
    return 2.0 * static_cast<double>(tensors_[x].rows) *
           static_cast<double>(tensors_[weight].size());
  }
  double projection(const KeyShape& s, TensorId weight) const {
    const auto columns = static_cast<double>(s.batch * s.key_heads * s.head_size);
    const auto rows = static_cast<double>(tensors_[weight].rows);
    // Keys and values, [rows, T] x [T, columns].
    if (s.map == KeyMap::project) return 4.0 * columns * rows * static_cast<double>(s.context);
    // The same with whole blocks, and the products of mean keys with the weight.
    if (s.map == KeyMap::sort) {
      return 4.0 * columns * rows * static_cast<double>(s.context) + 2.0 * columns * rows * rows;
    }
    return 0;
  }
  static double attention(const AttentionShape& s) {
    if (s.sums_states()) return states(s);
    return 4.0 * static_cast<double>(s.batch * s.heads * s.head_size) *
           static_cast<double>(s.allowed_pairs());
  }

  /// Every key is added to a state [F, K], every query reads one; random features are a GEMM too.
  static double states(const AttentionShape& s) {
    const auto tokens = static_cast<double>(s.batch * s.context);
    const auto rows = tokens * static_cast<double>(s.heads + s.key_heads);
    const auto product = 2.0 * rows * static_cast<double>(s.feature_size() * s.head_size);
    return s.kind == AttentionKind::performer ? 2 * product : product;
  }

  const Tensors& tensors_;
};

}  // namespace

double flops_of(const Op& op, const Tensors& tensors) {
  return std::visit(Flops(tensors), op);
}

double bytes_of(const Op& op, const Tensors& tensors) {
  const Uses uses = uses_of(op);
  double bytes = 0;
  for (const auto* ids : {&uses.reads, &uses.writes}) {
    for (const TensorId id : *ids) bytes += static_cast<double>(tensors[id].bytes());
  }
  return bytes;
}

}  // namespace fathom::engine
