// The way on from a plan to training: a run spec that `fathom train` takes, and a study around the
// budget that `fathom study` takes.
#pragma once

#include <string>

#include "planner/planner.h"

namespace fathom::planner {

/// TOML with a recipe; every line of it says whether it is a convention or was measured.
/// ConfigError for shapes that the engine does not train.
std::string run_spec_text(const Plan& plan);

/// Tokens of one training step that the recipe takes: half a million at GPT-3's 125M, with the root
/// of the size, a power of two from 2^14 to 2^22. A convention (arXiv 2005.14165, table 2.1).
double recipe_batch_tokens(double parameters);

/// A study in TOML: a ladder of friendly depths around the best depth of `parameters` and sizes
/// from a sixteenth of them up, each trained for its share of `tokens`.
std::string study_around_text(double parameters);

}  // namespace fathom::planner
