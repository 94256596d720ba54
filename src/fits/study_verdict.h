// The answer of a study in plain sentences, the first as its headline.
#pragma once

#include <string>
#include <vector>

#include "fits/study_fit.h"

namespace fathom::fits {

/// With a surface: the best depth; what crosses where; the law and its form; how it moves with
/// training. Without: what the pairs' own curves and the joint law say.
std::vector<std::string> study_answer(const StudyFit& fit);

}  // namespace fathom::fits
