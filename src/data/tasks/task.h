// Tasks: sequences with a label at some of their positions, made from counter-based random numbers.
//
// Example `index` of a seed is a pure function, so nothing is stored, any worker may ask for any
// batch, and a resumed run needs only its step. A target of -1 does not count. Held-out examples
// come from streams of their own and are the same for every seed of training; in a task of few
// short strings one may also occur in training.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/random.h"
#include "data/tasks/task_spec.h"
#include "data/token_file.h"

namespace fathom::data {

inline constexpr TokenId kNoTarget = -1;

/// The random numbers of one example, in the order they are asked for.
class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t stream) : stream_(seed, stream) {}
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(stream_.below(next_++, static_cast<std::uint64_t>(bound)));
  }
  /// Both ends count.
  std::int64_t between(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }

 private:
  RandomStream stream_;
  std::uint64_t next_ = 0;
};

enum class ExampleUse : std::uint8_t { training, held_out };

class Task {
 public:
  virtual ~Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  /// Every parameter resolved.
  const TaskSpec& spec() const { return spec_; }
  std::int64_t context() const { return context_; }
  virtual std::int64_t vocabulary() const = 0;
  /// What the number that example() returns stands for, e.g. "hops"; empty: nothing.
  virtual std::string group_name() const { return ""; }
  /// Whether a target that counts for the loss counts for the accuracy too.
  virtual bool is_scored(TokenId target) const { return target >= 0; }

  /// Fills `context` inputs and targets and returns the example's group.
  std::int64_t example(std::uint64_t seed, ExampleUse use, std::uint64_t index,
                       std::span<TokenId> inputs, std::span<TokenId> targets) const;

 protected:
  Task(TaskSpec spec, std::int64_t context) : spec_(std::move(spec)), context_(context) {}

 private:
  /// Inputs are filled with padding() and targets with kNoTarget beforehand.
  virtual std::int64_t make(Draws& draws, ExampleUse use, std::span<TokenId> inputs,
                            std::span<TokenId> targets) const = 0;
  virtual TokenId padding() const { return 0; }

  TaskSpec spec_;
  std::int64_t context_;
};

/// The task for sequences of `context` tokens. ConfigError, naming the key, for a parameter that
/// the task does not have or that makes no example.
std::unique_ptr<const Task> make_task(const TaskSpec& spec, std::int64_t context);

}  // namespace fathom::data
