// Does a head raise the logit of the token it attends to? Its OV circuit among n tokens:
//
//   C_ij = <u_j, W_O W_V x_i>,  centred over j:
//
// x_i what the head reads of token i alone, u_j the direction of token j's logit.
//
//   direct     mean over i of max(C_ii, 0) / max_j |C_ij|: 1 when no token's logit moves more than
//              the attended one's rises (after arXiv 2209.11895)
//   positive   sum of the eigenvalues of C over the sum of their magnitudes: 1 is pure copying, -1
//              its opposite, about 0 neither (Elhage 2021)
#pragma once

#include <Eigen/Core>
#include <vector>

#include "probe/result.h"
#include "probe/sweep.h"

namespace fathom::probe {

struct CopyScores {
  double direct = 0, positive = 0;
};

/// `written` [n, D]: what the head adds to the stream for token i; `unembed` [n, D]: the u_j.
CopyScores score_copying(const Eigen::MatrixXd& written, const Eigen::MatrixXd& unembed);

/// Sets the copying scores of all heads from the weights alone, among the tokens of a repeated
/// block (behind the `front` tokens that begin it): x_i is the embedding of token i through the
/// norm before attention, and the gain of the final norm is part of u_j. Left unset (NaN): models
/// without a head over their tokens, or with a narrower token table.
void measure_head_copying(Sweep& sweep, const Window& block, std::int64_t front,
                          std::vector<HeadResult>& heads);

}  // namespace fathom::probe
