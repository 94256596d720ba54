// The answer of a study in three plain sentences.
#pragma once

#include <string>
#include <vector>

#include "fits/study_fit.h"

namespace fathom::fits {

/// What crosses where; the law and how it stands to the published one; what the joint law adds.
std::vector<std::string> study_answer(const StudyFit& fit);

}  // namespace fathom::fits
