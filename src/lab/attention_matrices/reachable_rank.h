// Which attention matrices a head of a given size can produce, exactly.
//
// With n tokens of full column rank a head of size r can have any score matrix of rank at most r.
// Softmax ignores a shift per query, so P is reachable exactly when rank(log P + c 1^T) <= r for
// some c. Differences of neighbouring columns remove c: the least rank is that of the n x (n - 1)
// matrix of differences of log P. For a matrix without structure that is n - 1.
//
// Under a causal mask only differences with both keys j, j+1 <= i are given: the lower triangle
// (diagonal included) of an (n-1) x (n-1) matrix, the rest is free. A completion of least rank has
// rank at least that of any block of given entries, and for a matrix without structure one of rank
// ceil((n-1)/2) = floor(n/2) exists: complete_triangle() builds it.
//
// Generic ranks are computed for random integer scores modulo a prime: minors that are nonzero
// modulo p are nonzero, so each rank is a certain lower bound; completions are checked entry by
// entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "exact/prime_field.h"
#include "lab/attention_matrices/attention_fit.h"
#include "lab/frame/field_matrix.h"

namespace fathom::lab {

/// Random scores, n x n.
FieldMatrix random_scores(std::size_t tokens, const exact::PrimeField& field, std::uint64_t seed);

/// Least rank over all shifts per row.
std::size_t shift_rank(const FieldMatrix& scores, const exact::PrimeField& field);

/// Largest rank of a block of entries that a causal mask leaves, after shifts: a lower bound on the
/// head size.
std::size_t causal_block_rank(const FieldMatrix& scores, const exact::PrimeField& field);

/// Factors U (m x r) and V (r x m) whose product has the given entries on and below the diagonal of
/// the m x m matrix; none when the entries are in special position.
struct Completion {
  FieldMatrix left, right;
};
std::optional<Completion> complete_triangle(const FieldMatrix& given, std::size_t rank,
                                            const exact::PrimeField& field);

/// Bounds on the head size that reaches a matrix without structure, both proved for these scores.
struct ReachableSize {
  std::size_t lower = 0;  // no smaller head reaches it
  std::size_t upper = 0;  // a head of this size does
};
ReachableSize reachable_size(std::size_t tokens, bool causal, std::uint64_t seed);

/// Numerical rank of log P with the mean of each row taken off, by singular values above 1e-9 of
/// the largest; for targets without a mask.
std::size_t singular_rank(const AttentionTarget& target);

}  // namespace fathom::lab
