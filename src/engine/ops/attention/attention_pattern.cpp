#include "engine/ops/attention/attention_pattern.h"

#include <algorithm>
#include <bit>

#include "core/counts.h"
#include "core/random.h"

namespace fathom::engine {

bool AttentionShape::draws_block(std::int64_t query_block, std::int64_t key_block) const {
  const std::int64_t blocks = (context + block - 1) / block;
  const std::int64_t end = mask == MaskKind::bidirectional ? blocks : query_block;
  if (key_block == query_block || key_block >= end) return false;
  const RandomStream random(seed, static_cast<std::uint64_t>(query_block));
  const auto number = [&](std::int64_t k) { return random.bits(static_cast<std::uint64_t>(k)); };
  const std::uint64_t own = number(key_block);
  std::int64_t before = 0;
  for (std::int64_t k = 0; k < end; ++k) {
    before += static_cast<std::int64_t>(k != query_block && number(k) < own);
  }
  return before < random_blocks;
}

std::int64_t AttentionShape::allowed_pairs() const {
  if (has_pattern()) return AttentionPattern(*this).allowed_pairs();
  std::int64_t pairs = 0;
  for (std::int64_t i = 0; i < context; ++i) {
    std::int64_t first = 0, last = context - 1;
    if (mask != MaskKind::bidirectional) last = mask == MaskKind::causal ? i : i - 1;
    if (window > 0) {
      first = std::max(first, i - window + 1);
      last = std::min(last, i + window - 1);
    }
    pairs += std::max<std::int64_t>(0, last - first + 1);
  }
  return pairs;
}

AttentionPattern::AttentionPattern(const AttentionShape& shape)
    : blocks_((shape.context + kBlock - 1) / kBlock),
      words_(as_size(kBlock * blocks_ * blocks_)),
      views_(as_size(blocks_ * blocks_)) {
  const std::int64_t drawn_blocks = (shape.context + shape.block - 1) / shape.block;
  std::vector<bool> drawn(as_size(drawn_blocks));
  for (std::int64_t query = 0; query < shape.context; ++query) {
    if (shape.random_blocks > 0 && query % shape.block == 0) {
      for (std::int64_t k = 0; k < drawn_blocks; ++k) {
        drawn[as_size(k)] = shape.draws_block(query / shape.block, k);
      }
    }
    set_row(shape, query, drawn);
  }
  for (std::int64_t row = 0; row < blocks_; ++row) {
    for (std::int64_t column = 0; column < blocks_; ++column) view_block(row, column);
  }
}

void AttentionPattern::set_row(const AttentionShape& shape, std::int64_t query,
                               const std::vector<bool>& drawn) {
  std::uint64_t* row = words_.data() + query * blocks_;
  for (std::int64_t key = 0; key < shape.context; ++key) {
    const bool allowed = shape.mask_allows(query, key) &&
                         (shape.near(query, key) || drawn[as_size(key / shape.block)]);
    row[key / kBlock] |= static_cast<std::uint64_t>(allowed) << (key % kBlock);
  }
}

void AttentionPattern::view_block(std::int64_t row, std::int64_t column) {
  std::uint64_t any = 0, all = ~std::uint64_t{0};
  for (std::int64_t i = 0; i < kBlock; ++i) {
    const std::uint64_t word = words_[as_size((row * kBlock + i) * blocks_ + column)];
    any |= word;
    all &= word;
  }
  BlockView& view = views_[as_size(row * blocks_ + column)];
  view = any == 0 ? BlockView::none : BlockView::some;
  if (all == ~std::uint64_t{0}) view = BlockView::all;
}

std::int64_t AttentionPattern::allowed_pairs() const {
  std::int64_t pairs = 0;
  for (const std::uint64_t word : words_) pairs += std::popcount(word);
  return pairs;
}

std::int64_t AttentionPattern::visible_blocks() const {
  return blocks_ * blocks_ - std::count(views_.begin(), views_.end(), BlockView::none);
}

}  // namespace fathom::engine
