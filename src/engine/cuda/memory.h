// The memory of one executor on the device: a block for each storage of the plan, and what ops use
// while they run.
#pragma once

#include <memory>
#include <vector>

#include "engine/cuda/cuda_ops.h"
#include "engine/plan/step_plan.h"

namespace fathom::engine::cuda {

/// Zeroed device memory.
class Block {
 public:
  Block() = default;
  explicit Block(std::int64_t bytes);
  ~Block();
  Block(Block&& other) noexcept;
  Block& operator=(Block&& other) noexcept;
  char* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  char* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

class Memory {
 public:
  explicit Memory(const StepPlan& plan);

  /// nullptr for a tensor that does not exist.
  void* address(TensorId id) const;
  /// What an op touches, less what only the ops of its own lane use (scratch, workspaces).
  Footprint footprint(const Op& op) const;
  /// More memory, for the lifetime of this object.
  void* hold(std::int64_t bytes) { return held_.emplace_back(bytes).data(); }

  /// What the ops of a lane use in turn.
  const std::shared_ptr<Scratch>& scratch(Lane lane) const { return scratch_[lane]; }
  /// What an op and its side work share; some ops later another op gets the same memory.
  std::shared_ptr<Scratch> between() { return between_[next_between_++ % between_.size()]; }
  /// Call it once all ops have reserved what they need.
  void place_scratch();
  /// Clears what timing wrote: a program may only add to it.
  void clear_results();

  std::int64_t bytes() const;

 private:
  const StepPlan& plan_;
  EnumArray<Storage, Block> blocks_;
  EnumArray<Lane, std::shared_ptr<Scratch>> scratch_;
  std::vector<std::shared_ptr<Scratch>> between_;
  std::size_t next_between_ = 0;
  std::vector<Block> held_, scratch_blocks_;
};

}  // namespace fathom::engine::cuda
