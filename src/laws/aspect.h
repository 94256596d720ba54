// Fixed aspect ratios: d = R L. Kaplan et al. 2020 (arXiv 2001.08361) found that the loss varies by
// a few percent over a 40-fold range of ratios and considered about 100 fine; 64 and 128 are the
// habits of later models. A convention, not a fit: no loss, no interval.
#pragma once

#include "laws/law.h"

namespace fathom::laws {

class AspectLaw : public Law {
 public:
  explicit AspectLaw(double ratio);
  const LawInfo& info() const override { return info_; }
  Optimum optimum(const Budget& budget) const override;

 private:
  double ratio_;
  LawInfo info_;
};

}  // namespace fathom::laws
