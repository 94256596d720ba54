// From a plan to training: a run spec for `fathom train`, and a study around the budget for `fathom
// study`.
#pragma once

#include <string>

#include "planner/planner.h"

namespace fathom::planner {

/// TOML with a recipe; every line says whether it is a convention or was measured. ConfigError for
/// shapes that the engine does not train.
std::string run_spec_text(const Plan& plan);

/// Tokens per training step in the recipe: half a million at GPT-3's 125M, growing as the root of
/// the size, a power of two from 2^14 to 2^22. A convention (arXiv 2005.14165, table 2.1).
double recipe_batch_tokens(double parameters);

/// A study in TOML: a ladder of friendly depths around the best depth of `parameters` and sizes
/// from a sixteenth of it up, each trained for its share of `tokens`.
std::string study_around_text(double parameters);

}  // namespace fathom::planner
