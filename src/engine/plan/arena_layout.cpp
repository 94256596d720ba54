#include "engine/plan/arena_layout.h"

#include <algorithm>
#include <optional>

#include "engine/plan/alignment.h"
#include "engine/plan/occupied_space.h"

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
};

/// One block of memory: the lifetimes, one per program, of the tensors stored in it.
struct Block {
  EnumArray<Program, Interval> lives;
  std::int64_t bytes = 0;
  std::int64_t offset = -1;

  /// A tensor that a fused op keeps in registers is never in memory.
  bool lives_anywhere() const {
    return std::any_of(lives.begin(), lives.end(),
                       [](const Interval& life) { return !life.empty(); });
  }
};

class Layout {
 public:
  Layout(const Tensors& tensors, const Programs& programs, const std::vector<TensorId>& kept)
      : tensors_(tensors), programs_(programs), blocks_(tensors.size()), block_of_(tensors.size()) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      block_of_[i] = tensors.id_of(i);
      blocks_[i].bytes = aligned(tensors[i].bytes());
    }
    find_lives(kept);
    merge_in_place();
  }

  /// Memory that the second lane reads is reused `ops` later.
  void add_slack(const ProgramLanes& lanes, std::size_t ops) {
    for (const Program which : kEnumValues<Program>) {
      const auto& program = programs_[which];
      for (std::size_t time = 0; time < program.size(); ++time) {
        if (lanes[which][time] != Lane::side) continue;
        const std::size_t end = std::min(time + ops, program.size() - 1);
        for (const TensorId id : uses_of(program[time]).reads) {
          blocks_[block_of(id)].lives[which].include(static_cast<int>(end));
        }
      }
    }
  }

  std::int64_t place(Tensors& tensors) {
    std::vector<Block*> order;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const bool own = block_of_[i] == tensors.id_of(i) && is_activation(i);
      if (own && blocks_[i].lives_anywhere()) order.push_back(&blocks_[i]);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const Block* a, const Block* b) { return a->bytes > b->bytes; });
    std::int64_t total = 0;
    EnumArray<Program, std::optional<OccupiedSpace>> spaces;
    for (const Program which : kEnumValues<Program>) {
      spaces[which].emplace(programs_[which].size() + 1);  // kept tensors live past the last op
    }
    std::vector<const ByteRanges*> taken;
    for (Block* block : order) {
      taken.clear();
      for_each_life(*block, spaces, [&](OccupiedSpace& space, std::size_t first, std::size_t last) {
        space.find_taken(first, last, taken);
      });
      block->offset = lowest_gap(block->bytes, taken);
      const std::int64_t end = block->offset + block->bytes;
      total = std::max(total, end);
      for_each_life(*block, spaces, [&](OccupiedSpace& space, std::size_t first, std::size_t last) {
        space.take(first, last, block->offset, end);
      });
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (is_activation(i)) tensors[i].offset_bytes = blocks_[block_of(tensors.id_of(i))].offset;
    }
    return total;
  }

 private:
  bool is_activation(std::size_t i) const { return tensors_[i].storage == Storage::activation; }
  bool is_activation(TensorId id) const { return tensors_[id].storage == Storage::activation; }

  /// Follows merged blocks to the one that is placed, and shortens the path for next time.
  TensorId block_of(TensorId id) {
    while (block_of_[id] != id) id = block_of_[id] = block_of_[block_of_[id]];
    return id;
  }

  template <class Spaces, class Visit>
  static void for_each_life(const Block& block, Spaces& spaces, const Visit& visit) {
    for (const Program which : kEnumValues<Program>) {
      const Interval& life = block.lives[which];
      if (life.empty()) continue;
      visit(*spaces[which], static_cast<std::size_t>(life.first),
            static_cast<std::size_t>(life.last));
    }
  }

  void find_lives(const std::vector<TensorId>& kept) {
    for (const Program which : kEnumValues<Program>) {
      const auto& ops = programs_[which];
      const auto live = [&](TensorId id, std::size_t time) {
        blocks_[id].lives[which].include(static_cast<int>(time));
      };
      for (std::size_t time = 0; time < ops.size(); ++time) {
        const Uses uses = uses_of(ops[time]);
        for (const TensorId id : uses.reads) live(id, time);
        for (const TensorId id : uses.writes) live(id, time);
      }
      for (const TensorId id : kept) {
        if (!blocks_[id].lives[which].empty()) live(id, ops.size());
      }
    }
  }

  void merge_in_place() {
    for (const std::vector<Op>& ops : programs_) {
      for (const Op& op : ops) {
        for (const auto& [from, to] : uses_of(op).in_place) try_merge(from, to);
      }
    }
  }

  /// `to` takes the block of `from` when, in every program that has both, `from` dies where `to`
  /// is born.
  void try_merge(TensorId from, TensorId to) {
    if (from == to || !is_activation(from) || !is_activation(to)) return;
    // Other shapes or types have other offsets in the block: threads would write what others read.
    if (tensors_[from].dtype != tensors_[to].dtype || tensors_[from].rows != tensors_[to].rows ||
        tensors_[from].cols != tensors_[to].cols) {
      return;
    }
    const TensorId block = block_of(from);
    Block& target = blocks_[block];
    if (block_of_[to] != to || block == to || target.bytes < blocks_[to].bytes) return;
    for (const Program which : kEnumValues<Program>) {
      const Interval& source = target.lives[which];
      const Interval& result = blocks_[to].lives[which];
      if (source.empty() || result.empty()) continue;
      if (source.last != result.first) return;
    }
    for (const Program which : kEnumValues<Program>) {
      target.lives[which].merge(blocks_[to].lives[which]);
    }
    block_of_[to] = block;
  }

  const Tensors& tensors_;
  const Programs& programs_;
  TensorTable<Block> blocks_;  // merged ones are no longer used
  TensorTable<TensorId> block_of_;
};

}  // namespace

std::int64_t lay_out_activations(Tensors& tensors, const Programs& programs,
                                 const std::vector<TensorId>& kept) {
  return Layout(tensors, programs, kept).place(tensors);
}

std::int64_t lay_out_activations(Tensors& tensors, const Programs& programs,
                                 const std::vector<TensorId>& kept, const ProgramLanes& lanes,
                                 std::int64_t budget) {
  const bool alone = std::all_of(lanes.begin(), lanes.end(), [](const auto& program) {
    return std::find(program.begin(), program.end(), Lane::side) == program.end();
  });
  for (const std::size_t ops : {12, 8, 6, 4, 3, 2, 1}) {
    if (alone) break;
    Tensors attempt = tensors;
    Layout layout(tensors, programs, kept);
    layout.add_slack(lanes, ops);
    const std::int64_t bytes = layout.place(attempt);
    if (bytes > budget) continue;
    tensors = std::move(attempt);
    return bytes;
  }
  return lay_out_activations(tensors, programs, kept);
}

}  // namespace fathom::engine
