// A probed model's shape against the laws, and what fewer layers would save or have cost.
#pragma once

#include "pretrained/layout.h"
#include "probe/result.h"
#include "shape/shape.h"

namespace fathom::probe {

Shape shape_of(const pretrained::Layout& layout);
/// Absent values where no law applies. `hardware` is for the modelled time of decoding.
ShapeFacts shape_facts(const pretrained::Layout& layout, const ProbeResult& result,
                       const std::string& hardware);

}  // namespace fathom::probe
