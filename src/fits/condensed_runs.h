// Reduces very many runs to few enough to fit.
//
// The cost of a fit grows with its runs, and thousands of them say little more than a thousand.
// Repeats (one shape, one length) are averaged in ln loss, in groups of ceil(runs / most) or, where
// that leaves more than `most`, of twice as many and so on; if that is still too many, `most` are
// taken, evenly over the order by shape and length.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fits/run_point.h"

namespace fathom::fits {

struct CondensedRuns {
  std::vector<RunPoint> runs;
  std::string note;  // what was done, for the reader; empty: nothing
};

/// `sorted` by layers, width, params and tokens. At most `most` runs; all of them if there are no
/// more than that.
CondensedRuns condense_runs(std::span<const RunPoint> sorted, std::size_t most);

}  // namespace fathom::fits
