// Classes of layers by what removing them costs (nats per token, paired), with published anchors:
// Llama-3.1-8B's layers 2 to 29 cost 0.047 to 0.20, its first two 6.5 and 7.1.
//
//   harmful    the whole interval lies below 0: the loss falls without it
//   idle       the interval lies within 0.002 of 0 and its influence below 0.001
//   cheap, working, important, critical    by the mean, at 0.02, 0.25 and 1
//   undecided  the interval reaches from below 0 to above 0.02, or is unknown
#pragma once

#include "probe/result.h"

namespace fathom::probe {

inline constexpr double kIdleCost = 0.002, kCheapCost = 0.02, kWorkingCost = 0.25,
                        kImportantCost = 1;
inline constexpr double kIdleInfluence = 0.001;
/// A layer is quiet below this share of the median influence.
inline constexpr double kQuietShare = 0.4;

LayerClass classify(const Cost& removal, double influence);
/// Whether the error is small enough to stop adding tokens: a tenth of the cost, or 0.002 nats.
bool is_settled(const Cost& cost);

}  // namespace fathom::probe
