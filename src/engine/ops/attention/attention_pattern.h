// Which keys each query sees (AttentionShape::allows), as a table that kernels of any backend read:
// a bit for every pair, and for every block of 64 x 64 pairs whether none, some or all are set.
// Kernels skip blocks without any and look at bits only where a block has some.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/ops/attention/attention.h"

namespace fathom::engine {

class AttentionPattern {
 public:
  static constexpr std::int64_t kBlock = 64;

  explicit AttentionPattern(const AttentionShape& shape);

  /// Blocks in a row or column.
  std::int64_t blocks() const { return blocks_; }
  /// [64 blocks][blocks]: bit j % 64 of word j / 64 of row i; none beyond the context.
  const std::vector<std::uint64_t>& words() const { return words_; }
  /// [blocks][blocks]
  const std::vector<BlockView>& views() const { return views_; }
  std::int64_t allowed_pairs() const;
  /// Blocks that a kernel has to look at.
  std::int64_t visible_blocks() const;

 private:
  void set_row(const AttentionShape& shape, std::int64_t query, const std::vector<bool>& drawn);
  void view_block(std::int64_t row, std::int64_t column);

  std::int64_t blocks_;
  std::vector<std::uint64_t> words_;
  std::vector<BlockView> views_;
};

}  // namespace fathom::engine
