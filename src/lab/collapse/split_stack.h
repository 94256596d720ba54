// The stack of stack_spec.h with every token kept as a common mean m plus a residual at its own
// scale: x_i = m + 2^e r_i. No digits are lost however close the tokens come, so plain doubles
// follow rho to 10^-100000, while any arithmetic on x itself runs out of digits.
//
// Bidirectional attention: the score of query i and key j is, up to a shift per query,
// a_j + b_ij with a_j = <m Wq, 2^e r_j Wk>, b_ij = <2^e r_i Wq, 2^e r_j Wk>. With p = softmax(a)
// and E_ij = exp(b_ij) - 1,
//
//   A_ij - p_j = p_j (E_ij - sum_k p_k E_ik) / (1 + sum_k p_k E_ik),
//
// so the part of the output that differs from token to token, sum_j (A_ij - p_j) 2^e r_j, is of
// order 2^3e: the cubic law. Masked rows average over different tokens and stay of order 2^e.
// The algorithm differs from that of stack.h and is an independent check of it.
#pragma once

#include <functional>
#include <vector>

#include "lab/collapse/stack_spec.h"

namespace fathom::lab {

struct SplitCourse {
  std::vector<double> log10_rho;       // before the first layer and after each one
  std::vector<double> log10_residual;  // |X - token mean| itself
};

/// `look` is called between layers and may throw.
SplitCourse split_course(const StackSpec& spec, const StackDraw& draw,
                         const std::function<void()>& look = {});

}  // namespace fathom::lab
