#include "engine/plan/arena_layout.h"

#include <algorithm>
#include <numeric>

namespace fathom::engine {
namespace {

struct Interval {
  int first = -1, last = -1;
  bool empty() const { return first < 0; }
  void include(int time) {
    if (empty()) first = time;
    last = std::max(last, time);
  }
  void merge(const Interval& other) {
    if (other.empty()) return;
    first = empty() ? other.first : std::min(first, other.first);
    last = std::max(last, other.last);
  }
  bool overlaps(const Interval& other) const {
    return !empty() && !other.empty() && first <= other.last && other.first <= last;
  }
};

/// One block of memory: the lifetimes, one per program, of the tensors that lie in it.
struct Block {
  std::vector<Interval> lives;
  std::int64_t bytes = 0;
  std::int64_t offset = -1;

  bool conflicts(const Block& other) const {
    for (std::size_t p = 0; p < lives.size(); ++p) {
      if (lives[p].overlaps(other.lives[p])) return true;
    }
    return false;
  }
};

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

/// What a product makes; does not exist for other ops.
TensorId product_of(const Op& op) {
  if (const auto* linear = std::get_if<Linear>(&op)) return linear->y;
  if (const auto* backward = std::get_if<LinearBackward>(&op)) return backward->dx;
  return {};
}

bool reads(const Op& op, TensorId id) {
  const Uses uses = uses_of(op);
  return std::find(uses.reads.begin(), uses.reads.end(), id) != uses.reads.end();
}

bool finishes(const Op& op) {
  return std::holds_alternative<Activation>(op) || std::holds_alternative<Norm>(op) ||
         std::holds_alternative<ActivationBackward>(op) || std::holds_alternative<NormBackward>(op);
}

class Layout {
 public:
  Layout(const std::vector<Tensor>& tensors, const std::vector<const std::vector<Op>*>& programs,
         const std::vector<TensorId>& kept)
      : tensors_(tensors), programs_(programs), blocks_(tensors.size()), block_of_(tensors.size()) {
    std::iota(block_of_.begin(), block_of_.end(), 0);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      blocks_[i].lives.resize(programs.size());
      blocks_[i].bytes = aligned(tensors[i].bytes());
    }
    find_lives(kept);
    merge_in_place();
  }

  /// Whoever lies on the memory of a weight gradient's operands comes `ops` later.
  void add_slack(int ops) {
    for (std::size_t p = 0; p < programs_.size(); ++p) {
      for (std::size_t time = 0; time < programs_[p]->size(); ++time) {
        const auto* product = std::get_if<LinearBackward>(&(*programs_[p])[time]);
        if (product == nullptr || !product->d_weight.exists()) continue;
        const int end = static_cast<int>(
            std::min(time + static_cast<std::size_t>(ops), programs_[p]->size() - 1));
        for (const TensorId id : {product->dy, product->x}) {
          blocks_[block_of_[static_cast<std::size_t>(id.index)]].lives[p].include(end);
        }
      }
    }
  }

  /// Operands of a product live until the activation or norm of its result is through: a device
  /// may do both at once.
  void join_products() {
    for (std::size_t p = 0; p < programs_.size(); ++p) {
      const auto& ops = *programs_[p];
      for (std::size_t time = 0; time < ops.size(); ++time) {
        const TensorId result = product_of(ops[time]);
        if (!result.exists()) continue;
        const auto reader =
            std::find_if(ops.begin() + static_cast<std::ptrdiff_t>(time) + 1, ops.end(),
                         [&](const Op& op) { return reads(op, result); });
        if (reader == ops.end() || !finishes(*reader)) continue;
        for (const TensorId id : uses_of(ops[time]).reads) {
          blocks_[block_of_[static_cast<std::size_t>(id.index)]].lives[p].include(
              static_cast<int>(reader - ops.begin()));
        }
      }
    }
  }

  std::int64_t place(std::vector<Tensor>& tensors) {
    std::vector<Block*> order;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (block_of_[i] == i && is_activation(i)) order.push_back(&blocks_[i]);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const Block* a, const Block* b) { return a->bytes > b->bytes; });
    std::int64_t total = 0;
    std::vector<Block*> placed;  // by offset
    for (Block* block : order) {
      block->offset = lowest_gap(*block, placed);
      total = std::max(total, block->offset + block->bytes);
      placed.insert(
          std::upper_bound(placed.begin(), placed.end(), block,
                           [](const Block* a, const Block* b) { return a->offset < b->offset; }),
          block);
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (is_activation(i)) tensors[i].offset_bytes = blocks_[block_of_[i]].offset;
    }
    return total;
  }

 private:
  bool is_activation(std::size_t i) const { return tensors_[i].storage == Storage::activation; }

  void find_lives(const std::vector<TensorId>& kept) {
    for (std::size_t p = 0; p < programs_.size(); ++p) {
      const auto& ops = *programs_[p];
      for (std::size_t time = 0; time < ops.size(); ++time) {
        const Uses uses = uses_of(ops[time]);
        for (const TensorId id : uses.reads) life(id, p).include(static_cast<int>(time));
        for (const TensorId id : uses.writes) life(id, p).include(static_cast<int>(time));
      }
      for (const TensorId id : kept) {
        if (!life(id, p).empty()) life(id, p).include(static_cast<int>(ops.size()));
      }
    }
  }

  Interval& life(TensorId id, std::size_t program) {
    return blocks_[static_cast<std::size_t>(id.index)].lives[program];
  }

  void merge_in_place() {
    for (const std::vector<Op>* ops : programs_) {
      for (const Op& op : *ops) {
        for (const auto& [from, to] : uses_of(op).in_place) try_merge(from, to);
      }
    }
  }

  /// `to` takes the block of `from` when, in every program that has both, `from` dies where `to`
  /// is born.
  void try_merge(TensorId from_id, TensorId to_id) {
    const auto from = static_cast<std::size_t>(from_id.index);
    const auto to = static_cast<std::size_t>(to_id.index);
    if (from == to || !is_activation(from) || !is_activation(to)) return;
    // Other rows or types lie elsewhere in the block: threads would write what others still read.
    if (tensors_[from].dtype != tensors_[to].dtype || tensors_[from].rows != tensors_[to].rows ||
        tensors_[from].cols != tensors_[to].cols) {
      return;
    }
    Block& target = blocks_[block_of_[from]];
    if (block_of_[to] != to || block_of_[from] == to || target.bytes < blocks_[to].bytes) return;
    for (std::size_t p = 0; p < programs_.size(); ++p) {
      const Interval& source = target.lives[p];
      const Interval& result = blocks_[to].lives[p];
      if (source.empty() || result.empty()) continue;
      if (source.last != result.first) return;
    }
    for (std::size_t p = 0; p < programs_.size(); ++p) target.lives[p].merge(blocks_[to].lives[p]);
    block_of_[to] = block_of_[from];
    for (std::size_t& block : block_of_) {
      if (block == to) block = block_of_[from];
    }
  }

  static std::int64_t lowest_gap(const Block& block, const std::vector<Block*>& placed) {
    std::int64_t offset = 0;
    for (const Block* other : placed) {
      if (!block.conflicts(*other)) continue;
      if (other->offset >= offset + block.bytes) break;
      offset = std::max(offset, other->offset + other->bytes);
    }
    return offset;
  }

  const std::vector<Tensor>& tensors_;
  const std::vector<const std::vector<Op>*>& programs_;
  std::vector<Block> blocks_;  // by tensor; merged ones are left empty-handed
  std::vector<std::size_t> block_of_;
};

}  // namespace

std::int64_t lay_out_activations(std::vector<Tensor>& tensors,
                                 const std::vector<const std::vector<Op>*>& programs,
                                 const std::vector<TensorId>& kept, bool slack) {
  Layout bare(tensors, programs, kept);
  if (slack) bare.join_products();
  const std::int64_t least = bare.place(tensors);
  if (!slack) return least;
  for (const int ops : {8, 6, 4, 3, 2, 1}) {
    std::vector<Tensor> attempt = tensors;
    Layout layout(tensors, programs, kept);
    layout.join_products();
    layout.add_slack(ops);
    if (layout.place(attempt) > least) continue;
    tensors = std::move(attempt);
    break;
  }
  return least;
}

}  // namespace fathom::engine
