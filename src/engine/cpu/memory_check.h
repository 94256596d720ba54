// Whether this machine has the memory that a model takes, asked before a page of it is touched.
//
// Linux promises memory that it does not have, and kills a process, not always the one that asked,
// when the promise falls due. So a model is held against what is free now.
#pragma once

#include <cstdint>
#include <string>

namespace fathom::engine::cpu {

/// Bytes that can be taken without pushing others out: "MemAvailable" and "SwapFree" of
/// /proc/meminfo, or the control group's limit where that is lower. Infinite where `meminfo` does
/// not say.
double available_bytes(const std::string& meminfo, double group_limit);

/// DeviceError where there is too little.
void require_memory(std::int64_t bytes);

}  // namespace fathom::engine::cpu
