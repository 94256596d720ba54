// Which program computed a run, and on what: everything besides the spec and the tokens that
// determines its bits.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "train/run_spec.h"

namespace fathom::train {

/// {"fathom": version, "binary": hash of the program's file, "compiler", "onednn", "instructions",
/// "threads"}; on a GPU also {"device": its name, "capability", "algorithms": hash of the
/// remembered choices of GEMM algorithms, which are picked by timing}. A hash is null where the
/// file cannot be read.
nlohmann::ordered_json provenance_of(const RunSpec& spec);

}  // namespace fathom::train
