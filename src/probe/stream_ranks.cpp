#include "probe/stream_ranks.h"

#include <Eigen/Core>
#include <cmath>

#include "core/counts.h"
#include "fits/decompositions.h"

namespace fathom::probe {
namespace {

using RowMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

double entropy_rank(const Eigen::ArrayXd& shares) {
  double entropy = 0;
  for (const double p : shares) {
    if (p > 0) entropy -= p * std::log(p);
  }
  return std::exp(entropy);
}

void measure_one(const std::vector<float>& values, std::int64_t width, StreamResult& result) {
  const std::int64_t n = std::ssize(values) / width;
  if (n < 2) return;
  Eigen::MatrixXd x = Eigen::Map<const RowMatrix>(values.data(), n, width).cast<double>();
  x.rowwise() -= x.colwise().mean();
  // The smaller of the two products has the same nonzero eigenvalues.
  const Eigen::MatrixXd square =
      n < width ? Eigen::MatrixXd(x * x.transpose()) : Eigen::MatrixXd(x.transpose() * x);
  const Eigen::ArrayXd squares = fits::symmetric_eigenvalues(square).array().max(0.0);
  const Eigen::ArrayXd singular = squares.sqrt();
  if (!(squares.sum() > 0)) return;
  result.rank_sigma = entropy_rank(singular / singular.sum());
  result.rank_square = entropy_rank(squares / squares.sum());
  result.participation = squares.sum() * squares.sum() / squares.square().sum();
}

}  // namespace

StreamSample::StreamSample(std::int64_t depth, std::int64_t width, std::int64_t tokens,
                           std::size_t windows)
    : width_(width),
      per_window_(std::max<std::int64_t>(
          1, tokens / std::max<std::int64_t>(1, static_cast<std::int64_t>(windows)))),
      most_(tokens),
      states_(as_size(depth) + 1) {}

void StreamSample::add(const WindowStreams& streams) {
  const std::int64_t T = std::ssize(streams.states.front()) / width_;
  const std::int64_t step = std::max<std::int64_t>(1, (T - 1) / per_window_);
  for (std::int64_t t = 1; t < T && tokens() < most_; t += step) {
    for (std::size_t l = 0; l < states_.size(); ++l) {
      const auto row = streams.states[l].begin() + t * width_;
      states_[l].insert(states_[l].end(), row, row + width_);
    }
  }
}

std::int64_t StreamSample::tokens() const {
  return std::ssize(states_.front()) / width_;
}

void StreamSample::measure(std::vector<StreamResult>& results, unsigned threads) const {
  run_tasks(threads, states_.size(),
            [&](std::size_t l, std::size_t) { measure_one(states_[l], width_, results[l]); });
}

}  // namespace fathom::probe
