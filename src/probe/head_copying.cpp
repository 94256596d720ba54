#include "probe/head_copying.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <set>

#include "core/counts.h"
#include "pretrained/kernels.h"

namespace fathom::probe {
namespace {

using RowMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::MatrixXd rows_of(const pretrained::Matrix& matrix) {
  return Eigen::Map<const RowMatrix>(matrix.values.data(), matrix.rows, matrix.cols).cast<double>();
}

/// Rows `ids` of a table, each times `scale`.
RowMatrix picked_rows(const pretrained::Matrix& table, const std::vector<TokenId>& ids,
                      float scale) {
  RowMatrix rows(std::ssize(ids), table.cols);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const float* row = table.values.data() + ids[i] * table.cols;
    for (Eigen::Index c = 0; c < table.cols; ++c) rows(as_signed(i), c) = row[c] * scale;
  }
  return rows;
}

/// What the heads of one layer read of isolated tokens.
Eigen::MatrixXd read_tokens(const pretrained::Layout& layout, const pretrained::LayerWeights& layer,
                            RowMatrix embedded) {
  if (layer.attention_in.exists()) {
    pretrained::normalise(embedded.data(), embedded.rows(), embedded.cols(), layout.norm,
                          layout.epsilon, layer.attention_in, embedded.data());
  }
  return embedded.cast<double>();
}

/// The directions of the tokens' logits, before the final norm's division.
Eigen::MatrixXd logit_directions(const pretrained::Layout& layout,
                                 const pretrained::EndWeights& ends,
                                 const std::vector<TokenId>& ids) {
  Eigen::MatrixXd rows =
      picked_rows(ends.head.exists() ? ends.head : ends.tokens, ids, 1).cast<double>();
  if (ends.final_norm.exists()) {
    const Eigen::VectorXd gain =
        Eigen::Map<const Eigen::VectorXf>(ends.final_norm.gain.data(), rows.cols()).cast<double>();
    rows = rows * gain.asDiagonal();
  }
  // A layer norm subtracts the mean of the stream, and with it that of whatever a head wrote.
  if (layout.norm == pretrained::NormKind::layer) rows.colwise() -= rows.rowwise().mean().eval();
  return rows;
}

}  // namespace

CopyScores score_copying(const Eigen::MatrixXd& written, const Eigen::MatrixXd& unembed) {
  Eigen::MatrixXd circuit = written * unembed.transpose();
  circuit.colwise() -= circuit.rowwise().mean().eval();
  CopyScores scores;
  for (Eigen::Index i = 0; i < circuit.rows(); ++i) {
    const double most = circuit.row(i).cwiseAbs().maxCoeff();
    if (most > 0) scores.direct += std::max(circuit(i, i), 0.0) / most;
  }
  scores.direct /= static_cast<double>(circuit.rows());
  const Eigen::VectorXcd values = circuit.eigenvalues();
  const double size = values.cwiseAbs().sum();
  if (size > 0) scores.positive = values.real().sum() / size;
  return scores;
}

void measure_head_copying(Sweep& sweep, const Window& block, std::int64_t front,
                          std::vector<HeadResult>& heads) {
  const pretrained::Layout& layout = sweep.weights().layout();
  const pretrained::EndWeights& ends = sweep.weights().ends();
  const bool plain = layout.head == pretrained::HeadKind::plain && !ends.project_in.exists();
  if (!plain) return;
  const std::set<TokenId> distinct(block.inputs.begin() + front, block.inputs.end());
  const std::vector<TokenId> ids(distinct.begin(), distinct.end());
  const RowMatrix embedded = picked_rows(ends.tokens, ids, layout.embedding_scale);
  const Eigen::MatrixXd directions = logit_directions(layout, ends, ids);
  const std::int64_t K = layout.head_size, H = layout.heads, G = layout.key_heads;
  for (std::int64_t l = 0; l < layout.depth(); ++l) {
    const auto layer = sweep.weights().layer(l);
    const Eigen::MatrixXd read = read_tokens(layout, *layer, embedded);
    const Eigen::MatrixXd qkv = rows_of(layer->qkv), out = rows_of(layer->out);
    for (HeadResult& head : heads) {
      if (head.layer != l) continue;
      const std::int64_t group = head.head * G / H;
      const Eigen::MatrixXd written = read * qkv.middleRows((H + G + group) * K, K).transpose() *
                                      out.middleCols(head.head * K, K).transpose();
      const CopyScores scores = score_copying(written, directions);
      head.scores.copying = scores.direct;
      head.scores.copying_positive = scores.positive;
    }
  }
}

}  // namespace fathom::probe
