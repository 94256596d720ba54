// Rotary positions by a config.json: `rope_theta` with `rope_scaling`, or `rope_parameters`.
#pragma once

#include "pretrained/config_keys.h"
#include "pretrained/families.h"

namespace fathom::pretrained {

/// Of layers with full attention, then of layers with a window.
std::vector<RotarySpec> read_rotary(const Family& family, const ConfigKeys& config,
                                    const Layout& layout);

}  // namespace fathom::pretrained
