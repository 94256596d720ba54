// How well predictions match the targets of a task: by target, by sequence, by group and by
// position; and what one could score without looking at more than one token.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data/tasks/task.h"

namespace fathom::data {

/// Shares are of what is scored (Task::is_scored); NaN where nothing is.
struct TaskScores {
  struct Group {
    std::int64_t value = 0;  // e.g. 4 hops
    std::int64_t targets = 0;
    double accuracy = 0;
    double sequence_accuracy = 0;
    double loss = 0;  // of the scored targets, nats
    bool operator==(const Group&) const = default;
  };

  double accuracy = 0;           // targets that are right
  double sequence_accuracy = 0;  // examples with nothing wrong
  double majority = 0;           // of targets: always the commonest one
  double first_token = 0;        // the commonest one for the example's first token
  std::string group_name;
  std::vector<Group> groups;        // by value; empty when the task has none
  std::vector<double> by_position;  // accuracy
  bool operator==(const TaskScores&) const = default;
};

class TaskScorer {
 public:
  explicit TaskScorer(const Task& task);

  /// One example of the task, with a prediction and a loss for each position.
  void add(std::int64_t group, std::span<const TokenId> inputs, std::span<const TokenId> targets,
           std::span<const TokenId> predictions, std::span<const float> losses);
  TaskScores scores() const;
  /// Over all targets that count for the loss.
  double mean_loss() const { return loss_ / static_cast<double>(counted_); }

 private:
  struct Tally {
    std::int64_t targets = 0, right = 0, sequences = 0, right_sequences = 0;
    double loss = 0;
  };

  const Task& task_;
  double loss_ = 0;
  std::int64_t counted_ = 0;
  std::map<std::int64_t, Tally> groups_;
  std::vector<Tally> positions_;
  std::map<TokenId, std::map<TokenId, std::int64_t>> by_first_;  // first token, target: how often
};

}  // namespace fathom::data
