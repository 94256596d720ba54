// A stretch of the real line: an interval of an estimate, a range of data.
#pragma once

namespace fathom {

struct Interval {
  double low = 0;
  double high = 0;
};

}  // namespace fathom
