// Forecast of a whole adaptive study before its first run: the design simulated in a nominal world,
// where the best depth follows the published law (arXiv 2006.12467), being off by a factor of e in
// depth costs about 1 % of the loss and seeds scatter by 0.2 % of it.
#pragma once

#include <vector>

#include "study/rounds.h"

namespace fathom::study {

struct DesignForecast {
  std::vector<DesignRound> rounds;
  fits::DesignStep end;
};

DesignForecast foretell_design(const StudySpec& spec, const fits::DesignSpec& design);

}  // namespace fathom::study
