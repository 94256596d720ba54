// How much memory a computation may use, and how much it took.
#pragma once

namespace fathom {

/// Physical memory, or the control group's limit where that is lower, minus a tenth for the rest of
/// the system.
double usable_memory_bytes();

/// The most physical memory this process has held so far.
double peak_memory_bytes();

}  // namespace fathom
