// What one softmax head cannot express and a normalised one can.
//
// n tokens hold x_j in {-1, 1} (all 2^n inputs count equally); the target output is sum_j w_j x_j.
// The identity of a token enters the scores, not the values: the head's values are g x_j + b.
//
// softmax     The output is g times a convex combination of the x_j, plus b. Even if the weights
//             could be any function of the input, equal tokens give g and -g, others at most |g|:
//             the mean squared error is at least
//                min_g 2^-n [ 2 (g - |W|)^2 + sum over other x of max(0, |w.x| - g)^2 ],
//             W = sum_j w_j. (b = 0 is best: the inputs come in pairs x, -x, and the squared
//             distance to an interval is convex in its shift.)
// normalised  Scores brought to mean 0 and variance 1 over the keys, times a learnt gamma, plus a
//             learnt beta (arXiv 2005.09561). With scores w_j, gamma their deviation and beta their
//             mean the weights are w_j themselves: no error.
// two heads   Two softmax heads, one with the positive and one with the negative weights, reach the
//             target in the limit of sharp scores.
#pragma once

#include <cstddef>
#include <vector>

namespace fathom::lab {

struct HullResult {
  double floor = 0;             // least mean squared error of any softmax head
  double gain = 0;              // the g that attains it
  double variance = 0;          // mean square of the target: the error of answering 0
  double normalised_error = 0;  // largest error of the explicit normalised head
  double two_head_error = 0;    // largest error of two explicit softmax heads
};

/// ConfigError unless there are 2 to 16 finite weights that are not all equal.
HullResult measure_hull(const std::vector<double>& weights);

/// The floor alone, by the formula above.
double softmax_floor(const std::vector<double>& weights, double* gain = nullptr);

}  // namespace fathom::lab
