// Checks that this machine has the memory a model needs, before a page of it is touched.
//
// Linux overcommits memory: when more is used than it has, it kills a process, not always the one
// that asked. So a model's needs are compared with what is free now.
#pragma once

#include <cstdint>
#include <string>

namespace fathom::engine::cpu {

/// Bytes that can be taken without displacing others: "MemAvailable" and "SwapFree" of
/// /proc/meminfo, or the control group's limit where that is lower. Infinite where `meminfo` does
/// not say.
double available_bytes(const std::string& meminfo, double group_limit);

/// DeviceError where there is too little.
void require_memory(std::int64_t bytes);

}  // namespace fathom::engine::cpu
