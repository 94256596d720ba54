// What each attention head does, by scores of its weights A (row i a query, column j a key).
//
//   self        mean A[i, i];  previous  mean A[i, i-1];  second  mean A[i, i-2]
//   sink        mean A[i, 0], i >= 1                                     (arXiv 2410.10781)
//   delimiter   mean mass on punctuation marks and line ends, i >= 1     (arXiv 1906.04341)
//   local       mean mass within the last 8 keys, i >= 16
//   broad       entropy of a row / ln(keys it sees), mean over i >= 16: 1 is even attention
//   span        mean over i >= 16 of sum_j A[i, j] (i - j), in tokens
//   induction   on a block of random tokens read twice, queries of the second reading: mean
//               A[i, i-S+1], the token after the last occurrence           (arXiv 2209.11895)
//   duplicate   the same text: mean A[i, i-S]
//
// All but the last two on the text; never on the repeated block, where sinks vanish. A head's role
// is the largest of previous, induction, duplicate and sink above 0.4; else `local` above 0.6,
// `broad` above 0.9, or `mixed`. Its contribution is the mean of |W_O z| / |h|.
#pragma once

#include "probe/result.h"
#include "probe/sweep.h"

namespace fathom::probe {

/// Scores of one head over one window; S > 0: the repeated block's length. `delimiters` has one
/// entry for every token of the window; empty: not known.
HeadScores score_head(const float* weights, std::int64_t tokens, std::int64_t front,
                      std::int64_t repeat, std::span<const char> delimiters = {});
/// By id: whether the token consists of punctuation marks and line ends, spaces aside.
std::vector<char> delimiter_ids(const data::Tokenizer& tokenizer);
HeadRole role_of(const HeadScores& scores);

/// BOS (or whatever begins the text) and a block of distinct tokens of the text, twice. The block's
/// length is returned in `repeat`; no windows when the text has fewer than eight different tokens.
std::vector<Window> repeated_windows(std::span<const Window> text, std::int64_t front,
                                     std::int64_t context, std::size_t count, std::int64_t& repeat);

/// Roles and contributions of all heads. Without repeated windows induction and duplicates are not
/// measured: NaN; nor is attention to delimiters, where no ids are given.
std::vector<HeadResult> measure_heads(Sweep& sweep, std::span<const Window> windows,
                                      std::span<const Window> repeated, std::int64_t front,
                                      std::int64_t repeat,
                                      const std::vector<char>& delimiters = {});
/// Removal costs of the most and the least important heads: at most `most` of them, all where
/// there are no more. Importance must be known.
void measure_head_removals(Sweep& sweep, std::span<const Window> windows, std::size_t most,
                           std::vector<HeadResult>& heads);
/// Of all heads of a role at once, for every role that two heads or more have.
std::vector<RoleRemoval> measure_role_removals(Sweep& sweep, std::span<const Window> windows,
                                               const std::vector<HeadResult>& heads);

}  // namespace fathom::probe
