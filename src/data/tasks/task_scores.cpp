#include "data/tasks/task_scores.h"

#include <algorithm>

#include "core/counts.h"
#include "core/error.h"

namespace fathom::data {
namespace {

double share(std::int64_t part, std::int64_t whole) {
  return as_double(part) / as_double(whole);  // 0 / 0: NaN
}

std::int64_t commonest(const std::map<TokenId, std::int64_t>& counts) {
  std::int64_t most = 0;
  for (const auto& [target, count] : counts) most = std::max(most, count);
  return most;
}

}  // namespace

TaskScorer::TaskScorer(const Task& task) : task_(task), positions_(as_size(task.context())) {}

void TaskScorer::add(std::int64_t group, std::span<const TokenId> inputs,
                     std::span<const TokenId> targets, std::span<const TokenId> predictions,
                     std::span<const float> losses) {
  if (targets.size() != positions_.size() || predictions.size() != targets.size() ||
      losses.size() != targets.size() || inputs.size() != targets.size()) {
    throw InternalError("TaskScorer::add: not one value a position");
  }
  Tally& tally = groups_[group];
  std::int64_t scored = 0;
  std::int64_t right = 0;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    if (targets[t] == kNoTarget) continue;
    loss_ += static_cast<double>(losses[t]);
    ++counted_;
    if (!task_.is_scored(targets[t])) continue;
    const std::int64_t hit = predictions[t] == targets[t] ? 1 : 0;
    ++scored;
    right += hit;
    ++positions_[t].targets;
    positions_[t].right += hit;
    tally.loss += static_cast<double>(losses[t]);
    // A class token in front says nothing: the one after it is the first to read.
    const std::size_t first = task_.spec().class_first ? 1 : 0;
    ++by_first_[inputs[first]][targets[t]];
  }
  tally.targets += scored;
  tally.right += right;
  ++tally.sequences;
  tally.right_sequences += right == scored ? 1 : 0;
}

TaskScores TaskScorer::scores() const {
  TaskScores scores;
  Tally all;
  scores.group_name = task_.group_name();
  for (const auto& [value, tally] : groups_) {
    all.targets += tally.targets;
    all.right += tally.right;
    all.sequences += tally.sequences;
    all.right_sequences += tally.right_sequences;
    if (scores.group_name.empty()) continue;
    scores.groups.push_back({value, tally.targets, share(tally.right, tally.targets),
                             share(tally.right_sequences, tally.sequences),
                             tally.loss / as_double(tally.targets)});
  }
  scores.accuracy = share(all.right, all.targets);
  scores.sequence_accuracy = share(all.right_sequences, all.sequences);
  std::map<TokenId, std::int64_t> totals;
  std::int64_t by_first = 0;
  for (const auto& [first, counts] : by_first_) {
    by_first += commonest(counts);
    for (const auto& [target, count] : counts) totals[target] += count;
  }
  scores.majority = share(commonest(totals), all.targets);
  scores.first_token = share(by_first, all.targets);
  for (const Tally& tally : positions_) {
    scores.by_position.push_back(share(tally.right, tally.targets));
  }
  return scores;
}

}  // namespace fathom::data
