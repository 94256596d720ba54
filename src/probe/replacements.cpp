#include "probe/replacements.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>

#include "core/counts.h"
#include "pretrained/kernels.h"

namespace fathom::probe {
namespace {

using RowMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using StateMap = Eigen::Map<const RowMatrix>;

constexpr std::int64_t kTokensPerWidth = 4;
constexpr double kRidge = 1e-4;  // times the mean variance of the input

StateMap state(const std::vector<float>& values, std::int64_t width) {
  return {values.data(), std::ssize(values) / width, width};
}

}  // namespace

struct ReplacementFit::Sums {
  Eigen::VectorXd x, change;  // sums of input and change
  Eigen::MatrixXd xx, xd;     // sums of products, where maps are fitted
};

ReplacementFit::ReplacementFit(std::int64_t depth, std::int64_t width, std::uint64_t memory_bytes)
    : width_(width),
      maps_(2 * as_size(depth) * as_size(width) * as_size(width) * sizeof(double) <= memory_bytes) {
  for (std::int64_t l = 0; l < depth; ++l) {
    auto sums = std::make_shared<Sums>();
    sums->x = sums->change = Eigen::VectorXd::Zero(width);
    if (maps_) sums->xx = sums->xd = Eigen::MatrixXd::Zero(width, width);
    layers_.push_back(std::move(sums));
  }
}

void ReplacementFit::add(const WindowStreams& streams, unsigned threads) {
  run_tasks(threads, layers_.size(), [&](std::size_t l, std::size_t) {
    Sums& sums = *layers_[l];
    const StateMap h = state(streams.states[l], width_),
                   next = state(streams.states[l + 1], width_);
    const RowMatrix change = next - h;
    sums.x += h.cast<double>().colwise().sum().transpose();
    sums.change += change.cast<double>().colwise().sum().transpose();
    if (!maps_) return;
    const Eigen::MatrixXd x = h.cast<double>(), d = change.cast<double>();
    sums.xx.noalias() += x.transpose() * x;
    sums.xd.noalias() += x.transpose() * d;
  });
  tokens_ += std::ssize(streams.states.front()) / width_;
}

bool ReplacementFit::can_map() const {
  return maps_ && tokens_ >= kTokensPerWidth * width_;
}

std::shared_ptr<const LayerMap> ReplacementFit::shift(std::int64_t layer) const {
  auto map = std::make_shared<LayerMap>();
  const Eigen::VectorXf mean = (layers_[as_size(layer)]->change / as_double(tokens_)).cast<float>();
  map->bias.assign(mean.data(), mean.data() + mean.size());
  return map;
}

std::shared_ptr<const LayerMap> ReplacementFit::map(std::int64_t layer) const {
  const Sums& sums = *layers_[as_size(layer)];
  const double n = as_double(tokens_);
  const Eigen::VectorXd x = sums.x / n, d = sums.change / n;
  Eigen::MatrixXd cov = sums.xx / n - x * x.transpose();
  const Eigen::MatrixXd cross = sums.xd / n - x * d.transpose();
  cov.diagonal().array() += kRidge * cov.diagonal().mean() + 1e-12;
  const Eigen::MatrixXd a = cov.llt().solve(cross);  // change = a^T (h - x) + d
  auto map = std::make_shared<LayerMap>();
  map->weight.rows = map->weight.cols = width_;
  map->weight.values.resize(as_size(width_ * width_));
  Eigen::Map<RowMatrix> weight(map->weight.values.data(), width_, width_);
  weight = a.transpose().cast<float>();
  weight.diagonal().array() += 1;
  const Eigen::VectorXf bias = (d - a.transpose() * x).cast<float>();
  map->bias.assign(bias.data(), bias.data() + bias.size());
  return map;
}

MapFit judge_map(const LayerMap& map, const LayerMap& shift, const WindowStreams& streams,
                 std::int64_t layer, std::int64_t width) {
  const std::vector<float>& h = streams.states[as_size(layer)];
  const std::vector<float>& next = streams.states[as_size(layer) + 1];
  std::vector<float> predicted(h.size());
  pretrained::multiply(h.data(), std::ssize(h) / width, map.weight, map.bias, predicted.data());
  MapFit fit;
  for (std::size_t i = 0; i < h.size(); ++i) {
    const double residual = static_cast<double>(next[i]) - predicted[i];
    const double about = static_cast<double>(next[i]) - h[i] - shift.bias[i % as_size(width)];
    fit.residual += residual * residual;
    fit.total += about * about;
  }
  return fit;
}

}  // namespace fathom::probe
