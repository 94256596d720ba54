// An interval of the real line: of an estimate, or the range of data.
#pragma once

namespace fathom {

struct Interval {
  double low = 0;
  double high = 0;
};

}  // namespace fathom
