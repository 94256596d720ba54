// The step of a design's greedy choice: what may be added next, and which of it gains most for its
// cost.
#pragma once

#include <vector>

#include "fits/design_picture.h"

namespace fathom::fits {

/// What is added at once: a trajectory, or two of about one size. At a size not seen before one
/// depth alone tells only the level there; two tell which is better.
using Choice = std::vector<const Candidate*>;
double cost_of(const Choice& choice);

/// Points into `candidates`.
std::vector<Choice> list_choices(const std::vector<Candidate>& candidates);

/// The best choice by gain for cost; null when none fits the money or none helps.
const Choice* pick(const DesignPicture& picture, const std::vector<Choice>& choices, double money);

}  // namespace fathom::fits
