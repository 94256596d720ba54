#include "lab/trained/task_heads.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "core/counts.h"
#include "core/error.h"
#include "data/tasks/task.h"
#include "probe/head_copying.h"
#include "train/attention_maps.h"
#include "train/run_folder.h"
#include "train/run_spec.h"

namespace fathom::lab {
namespace {

constexpr std::size_t kWatchedExamples = 64;
constexpr std::size_t kHopPowers = 5;  // 1, 2, 4, 8, 16 hops
// Tokens of `induction`; 1 is the begin token.
constexpr data::TokenId kPadding = 0;
constexpr std::int64_t kFirstLetter = 2;

/// Held-out examples of a run's task, concatenated.
struct WatchedExamples {
  std::size_t context;
  std::vector<data::TokenId> inputs, targets;
  std::vector<std::int64_t> groups;

  explicit WatchedExamples(const data::Task& task) : context(as_size(task.context())) {
    inputs.resize(kWatchedExamples * context);
    targets.resize(inputs.size());
    for (std::size_t n = 0; n < kWatchedExamples; ++n) {
      groups.push_back(task.example(0, data::ExampleUse::held_out, n,
                                    std::span(inputs).subspan(n * context, context),
                                    std::span(targets).subspan(n * context, context)));
    }
  }
};

/// Sum and count of weights, for a mean.
struct MeanWeight {
  double sum = 0, count = 0;
  void add(float weight) {
    sum += static_cast<double>(weight);
    ++count;
  }
  double value() const { return count > 0 ? sum / count : 0; }
};

/// Means by a distance in tokens.
using WeightsByDistance = std::map<std::int64_t, MeanWeight>;

struct InductionTally {
  WeightsByDistance back;     // from a token to the one that far back
  WeightsByDistance shifted;  // from a token of the second copy to that far after its counterpart
};

/// The distance that has the largest mean.
std::int64_t best_distance(const WeightsByDistance& weights) {
  return std::max_element(
             weights.begin(), weights.end(),
             [](const auto& a, const auto& b) { return a.second.value() < b.second.value(); })
      ->first;
}

using RowMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// A parameter as a matrix with `rows` rows.
Eigen::MatrixXd matrix_of(const train::Weights& weights, const std::string& name,
                          std::int64_t rows) {
  const std::vector<float>& values = weights.parameters.at(name);
  return Eigen::Map<const RowMatrix>(values.data(), rows, std::ssize(values) / rows).cast<double>();
}

/// Rows minus their means, divided by their standard deviations where `scaled`.
Eigen::MatrixXd centred(Eigen::MatrixXd rows, bool scaled) {
  rows.colwise() -= rows.rowwise().mean().eval();
  if (!scaled) return rows;
  const double width = as_double(rows.cols());
  for (Eigen::Index i = 0; i < rows.rows(); ++i)
    rows.row(i) /= rows.row(i).norm() / std::sqrt(width);
  return rows;
}

/// What every head of an attention-only pre-norm model writes for a letter, computed from the
/// letter's embedding alone: with layer norms, without positions and biases.
probe::CopyScores copying_of(const train::Weights& weights, std::int64_t layer, std::int64_t head,
                             std::int64_t first_letter, std::int64_t letters) {
  const model::ModelSpec& spec = weights.spec;
  const std::string name = fmt::format("sub.{}.attention", layer);
  const std::int64_t K = spec.resolved_head_size(), G = spec.resolved_key_heads();
  const Eigen::MatrixXd tokens = matrix_of(weights, "tokens.weight", spec.vocab);
  const Eigen::MatrixXd read = centred(tokens.middleRows(first_letter, letters), true) *
                               matrix_of(weights, name + ".norm.gain", 1).row(0).asDiagonal();
  const Eigen::MatrixXd qkv = matrix_of(weights, name + ".qkv.weight", (spec.heads + 2 * G) * K);
  const Eigen::MatrixXd values = qkv.middleRows((spec.heads + G + head * G / spec.heads) * K, K);
  const Eigen::MatrixXd out =
      matrix_of(weights, name + ".out.weight", spec.width).middleCols(head * K, K);
  const Eigen::MatrixXd written = centred(read * values.transpose() * out.transpose(), false);
  const Eigen::MatrixXd table = spec.tied ? tokens : matrix_of(weights, "head.weight", spec.vocab);
  const Eigen::MatrixXd unembed = table.middleRows(first_letter, letters) *
                                  matrix_of(weights, "final_norm.gain", 1).row(0).asDiagonal();
  return probe::score_copying(written, unembed);
}

/// The place one hop back from each position, or -1: after the last earlier equal character.
std::vector<std::int64_t> one_hop(std::span<const data::TokenId> inputs) {
  std::vector<std::int64_t> after(inputs.size(), -1);
  std::map<data::TokenId, std::int64_t> last;
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const auto [place, is_new] = last.try_emplace(inputs[i], -1);
    if (!is_new) after[i] = place->second + 1;
    place->second = as_signed(i);
  }
  return after;
}

/// A map of places applied twice.
std::vector<std::int64_t> doubled(const std::vector<std::int64_t>& map) {
  std::vector<std::int64_t> twice(map.size(), -1);
  for (std::size_t i = 0; i < map.size(); ++i) {
    if (map[i] >= 0) twice[i] = map[as_size(map[i])];
  }
  return twice;
}

/// For every position, the place of the bracket that it closes, or -1.
std::vector<std::int64_t> opened_by(std::span<const data::TokenId> inputs, std::int64_t kinds) {
  std::vector<std::int64_t> places(inputs.size(), -1), open;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] < kinds) {
      open.push_back(as_signed(i));
    } else {
      places[i] = open.back();
      open.pop_back();
    }
  }
  return places;
}

struct OpenedRun {
  train::RunSpec spec;
  train::Weights weights;
  WatchedExamples examples;

  explicit OpenedRun(const std::filesystem::path& run)
      : spec(train::read_run_spec(train::RunFolder(run).spec(), {})),
        weights(train::load_weights(run)),
        examples(*data::make_task(spec.task, spec.model.context)) {}
};

}  // namespace

void read_induction_heads(const Setup& /*setup*/, const std::filesystem::path& run, Json& result) {
  const OpenedRun opened(run);
  const WatchedExamples& examples = opened.examples;
  const std::size_t T = examples.context;
  std::map<std::pair<std::int64_t, std::int64_t>, InductionTally> tallies;
  train::watch_attention(
      opened.weights, examples.inputs, 1,
      [&](std::size_t n, std::int64_t layer, std::int64_t head, std::span<const float> map) {
        InductionTally& tally = tallies[{layer, head}];
        const std::size_t period = as_size(examples.groups[n]);
        const std::span inputs = std::span(examples.inputs).subspan(n * T, T);
        const std::span targets = std::span(examples.targets).subspan(n * T, T);
        for (std::size_t i = 1; i < T && inputs[i] != kPadding; ++i) {
          const std::span row = map.subspan(i * T, T);
          for (std::size_t j = 0; j <= i; ++j) tally.back[as_signed(i - j)].add(row[j]);
          if (targets[i] == data::kNoTarget) continue;
          for (std::size_t shift = 0; shift <= period; ++shift) {
            tally.shifted[as_signed(shift)].add(row[i - period + shift]);
          }
        }
      });
  result["heads"] = Json::array();
  for (const auto& [place, tally] : tallies) {
    const probe::CopyScores copying = copying_of(opened.weights, place.first, place.second,
                                                 kFirstLetter, opened.spec.task.symbols);
    const std::int64_t back = best_distance(tally.back);
    const std::int64_t shift = best_distance(tally.shifted);
    result["heads"].push_back({{"layer", place.first},
                               {"head", place.second},
                               {"prefix", tally.shifted.at(1).value()},
                               {"duplicate", tally.shifted.at(0).value()},
                               {"previous", tally.back.at(1).value()},
                               {"back", back},
                               {"back_attention", tally.back.at(back).value()},
                               {"shift", shift},
                               {"shift_attention", tally.shifted.at(shift).value()},
                               {"copying", copying.direct},
                               {"copying_positive", copying.positive}});
  }
}

void read_hop_heads(const Setup& /*setup*/, const std::filesystem::path& run, Json& result) {
  const OpenedRun opened(run);
  const WatchedExamples& examples = opened.examples;
  const std::size_t T = examples.context;
  const auto layers = as_size(opened.spec.model.layers);
  using HeadMeans = std::map<std::int64_t, std::array<MeanWeight, kHopPowers>>;
  std::vector<HeadMeans> means(layers);
  train::watch_attention(
      opened.weights, examples.inputs, 1,
      [&](std::size_t n, std::int64_t layer, std::int64_t head, std::span<const float> map) {
        std::vector<std::int64_t> hops = one_hop(std::span(examples.inputs).subspan(n * T, T));
        for (MeanWeight& mean : means[as_size(layer)][head]) {
          for (std::size_t i = 1; i < T; ++i) {
            if (hops[i] >= 0) mean.add(map[i * T + as_size(hops[i])]);
          }
          hops = doubled(hops);
        }
      });
  result["hop_attention"] = Json::array();
  for (const HeadMeans& heads : means) {
    Json best = Json::array();
    for (std::size_t power = 0; power < kHopPowers; ++power) {
      double most = 0;
      for (const auto& [head, each] : heads) most = std::max(most, each[power].value());
      best.push_back(most);
    }
    result["hop_attention"].push_back(std::move(best));
  }
}

void read_bracket_heads(const Setup& /*setup*/, const std::filesystem::path& run, Json& result) {
  const OpenedRun opened(run);
  const WatchedExamples& examples = opened.examples;
  const std::size_t T = examples.context;
  std::vector<std::vector<std::int64_t>> places;
  std::map<std::int64_t, double> offsets;
  double closing = 0;
  for (std::size_t n = 0; n < kWatchedExamples; ++n) {
    places.push_back(
        opened_by(std::span(examples.inputs).subspan(n * T, T), opened.spec.task.symbols));
    for (std::size_t i = 0; i < T; ++i) {
      if (places[n][i] < 0) continue;
      ++offsets[as_signed(i) - places[n][i]];
      ++closing;
    }
  }
  std::vector<std::vector<double>> hits(as_size(opened.spec.model.layers),
                                        std::vector<double>(as_size(opened.spec.model.heads)));
  train::watch_attention(
      opened.weights, examples.inputs, 1,
      [&](std::size_t n, std::int64_t layer, std::int64_t head, std::span<const float> map) {
        for (std::size_t i = 0; i < T; ++i) {
          const std::span row = map.subspan(i * T, T);
          const auto most = std::max_element(row.begin(), row.end()) - row.begin();
          if (places[n][i] >= 0 && most == places[n][i]) {
            hits[as_size(layer)][as_size(head)] += 1 / closing;
          }
        }
      });
  double best = 0;
  for (const auto& [offset, count] : offsets) best = std::max(best, count / closing);
  result["brackets"] = hits;
  result["bracket_offset"] = best;
}

}  // namespace fathom::lab
