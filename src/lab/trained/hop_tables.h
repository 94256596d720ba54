// Runs on k-hop by depth: which k they solve, and tables that show it next to the published one.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "lab/trained/hop_published.h"
#include "lab/trained/training_part.h"

namespace fathom::lab {

inline constexpr std::int64_t kMostHops = 16;

/// Runs by depth, one for each seed.
using ByDepth = std::map<std::int64_t, std::vector<const TrainedRun*>>;
using Units = std::span<const std::size_t>;

double mean_error(const std::vector<const TrainedRun*>& runs, Units seeds, std::int64_t hops);

/// The largest k up to which all have at most 5 % error.
std::int64_t largest_solved(const std::vector<const TrainedRun*>& runs, Units seeds);

/// Mean over the seeds of the best head's attention to the place 2^power hops back
/// (task_heads.h); layers count from 1.
double hop_attention(const std::vector<const TrainedRun*>& runs, Units seeds, std::int64_t layer,
                     std::size_t power);

/// Errors by k and depth of the published size, as a table and a chart.
void show_hop_errors(const PublishedWidth& published, const ByDepth& runs, Conclusion& conclusion);
/// The same in miniature.
void show_small_hops(const ByDepth& runs, Conclusion& conclusion);
/// What heads attend to, of the runs whose heads were read.
void show_hop_heads(const PublishedWidth& size, const ByDepth& runs, Conclusion& conclusion);

}  // namespace fathom::lab
