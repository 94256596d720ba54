// Sentences about a probed model, each printed only where its condition holds. They speak of "this
// text" and never of reasoning, which a loss on a text does not measure.
#pragma once

#include <string>
#include <vector>

#include "probe/result.h"

namespace fathom::probe {

/// The three that say most come first.
std::vector<std::string> make_verdict(const ProbeResult& result);
/// "layer 3", "layers 3, 4 and 7".
std::string layers_text(const std::vector<std::int64_t>& layers);

}  // namespace fathom::probe
