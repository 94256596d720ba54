// Gradients of head gates against central differences of the loss, for every family and block.
#include "pretrained/backward.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/json_text.h"
#include "pretrained/kernels.h"

namespace fathom::pretrained {
namespace {

namespace fs = std::filesystem;

/// Differences need a smooth loss: relu, which has kinks, gives way to gelu.
Checkpoint smooth(const fs::path& folder) {
  Checkpoint checkpoint = open_checkpoint(folder);
  auto& config = *checkpoint.config;
  if (config.value("activation_function", "") == "relu") config["activation_function"] = "gelu";
  return checkpoint;
}

/// A golden folder's model, window and targets; every third place does not count.
struct Case {
  explicit Case(const fs::path& folder)
      : weights(smooth(folder), 1u << 30),
        ids(read_json_file(folder / "golden.json").at("ids").get<std::vector<data::TokenId>>()),
        forward(weights, std::ssize(ids)) {
    for (std::size_t t = 0; t < ids.size(); ++t) {
      targets.push_back(t % 3 == 2 ? -1 : ids[(t + 1) % ids.size()]);
    }
    for (std::int64_t l = 0; l < weights.layout().depth(); ++l) layers.push_back(*weights.layer(l));
  }

  /// Streams before every layer and after the last.
  std::vector<std::vector<float>> streams() const {
    std::vector<std::vector<float>> h(1, std::vector<float>(ids.size() * width()));
    Scratch scratch;
    forward.embed(ids, h[0].data());
    for (std::size_t l = 0; l < layers.size(); ++l) {
      h.push_back(h.back());
      forward.run_layer(layers[l], static_cast<std::int64_t>(l), h.back().data(), scratch);
    }
    return h;
  }
  double loss() const {
    const auto h = streams();
    std::vector<float> losses(ids.size());
    Scratch scratch;
    forward.losses(h.back().data(), targets, scratch, losses.data());
    return std::accumulate(losses.begin(), losses.end(), 0.0);
  }
  /// The loss with what one head writes multiplied by `gate`.
  double gated_loss(std::size_t layer, std::int64_t head, float gate) {
    const Matrix kept = layers[layer].out;
    const std::int64_t K = weights.layout().head_size;
    for (std::int64_t r = 0; r < kept.rows; ++r) {
      for (std::int64_t i = 0; i < K; ++i) {
        layers[layer].out.values[static_cast<std::size_t>(r * kept.cols + head * K + i)] *= gate;
      }
    }
    const double result = loss();
    layers[layer].out = kept;
    return result;
  }
  std::size_t width() const { return static_cast<std::size_t>(weights.layout().width); }

  Weights weights;
  std::vector<data::TokenId> ids, targets;
  Forward forward;
  std::vector<LayerWeights> layers;
};

void compare_gates(const fs::path& folder) {
  SCOPED_TRACE(folder.filename().string());
  Case c(folder);
  if (c.weights.layout().head == HeadKind::none) return;
  const auto H = static_cast<std::size_t>(c.weights.layout().heads);
  const auto h = c.streams();
  const Backward backward(c.forward);
  std::vector<float> gradient(h[0].size());
  std::vector<double> gates(H * c.layers.size());
  backward.ends(h.back().data(), c.targets, gradient.data());
  for (std::size_t l = c.layers.size(); l-- > 0;) {
    backward.layer(c.layers[l], static_cast<std::int64_t>(l), h[l].data(), gradient.data(),
                   gates.data() + l * H);
  }
  double largest = 0;
  for (const double gate : gates) largest = std::max(largest, std::abs(gate));
  EXPECT_GT(largest, 0.01);
  for (std::size_t l = 0; l < c.layers.size(); ++l) {
    for (std::size_t head = 0; head < H; ++head) {
      constexpr float kStep = 0.02f;
      const auto n = static_cast<std::int64_t>(head);
      // Four points: the error is of the order of the step to the fourth, and of f32's rounding.
      const double near = c.gated_loss(l, n, 1 + kStep) - c.gated_loss(l, n, 1 - kStep);
      const double far = c.gated_loss(l, n, 1 + 2 * kStep) - c.gated_loss(l, n, 1 - 2 * kStep);
      const double slope = (8 * near - far) / (12 * static_cast<double>(kStep));
      EXPECT_NEAR(gates[l * H + head], slope, 2e-3 * largest) << "layer " << l << " head " << head;
    }
  }
}

TEST(Backward, GatesAreTheSlopesOfTheLossForEveryFamily) {
  std::size_t cases = 0;
  for (const auto& entry :
       fs::directory_iterator(fs::path(FATHOM_SOURCE_DIR) / "tests/golden/families")) {
    compare_gates(entry.path());
    ++cases;
  }
  EXPECT_GT(cases, 20u);
}

}  // namespace
}  // namespace fathom::pretrained
