// A sweep (sweep.h) on a GPU: windows of one length move together, so every product has as many
// rows as they have tokens, one variant after the other. The base and all variants take the same
// rows through the same products, so a layer that does nothing costs exactly nothing here too.
#pragma once

#include "probe/sweep.h"

namespace fathom::probe {

/// Where the chunk of windows that begins here ends: windows of one length, as many as memory
/// allows, divided evenly over the chunks that they need.
std::size_t device_chunk_end(const SweepControl& control, std::span<const Window> windows,
                             std::size_t begin, std::size_t depth, std::size_t variants);

/// `forward` is for windows of this length; done(first + i, ...) for window i.
void run_device_chunk(const SweepControl& control, const pretrained::Forward& forward,
                      std::span<const Window> windows, std::size_t first, const Path& base,
                      const std::vector<Variant>& variants, const WindowDone& done);

}  // namespace fathom::probe
