// Very many runs, made few enough to fit.
//
// What a fit costs grows with its runs, and thousands of them say little that a thousand do not.
// Repeats (one shape, one length) are averaged in ln loss, in groups of ceil(runs / most) or, where
// that leaves more than `most`, of twice as many and so on; of what is still too much, `most` are
// taken, evenly over the order by shape and length.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fits/run_point.h"

namespace fathom::fits {

struct CondensedRuns {
  std::vector<RunPoint> runs;
  std::string note;  // what was done, for a reader; empty: nothing
};

/// `sorted` by layers, width, params and tokens. Not more than `most`, and all of them where they
/// are not more already.
CondensedRuns condense_runs(std::span<const RunPoint> sorted, std::size_t most);

}  // namespace fathom::fits
