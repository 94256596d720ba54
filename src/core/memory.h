// How much memory a computation may count on.
#pragma once

namespace fathom {

/// Physical memory, or the control group's limit where that is lower, less a tenth for the rest of
/// the system.
double usable_memory_bytes();

}  // namespace fathom
