// What the heads of a model trained on a task attend to, compared with what the task requires.
#pragma once

#include <filesystem>

#include "lab/frame/experiment.h"

namespace fathom::lab {

/// Adds "heads" to the result of a run on `induction`: for each its layer, head and, over held-out
/// examples,
///   prefix     mean attention from a token of the second copy to the one after its counterpart in
///              the first
///   duplicate  to that counterpart
///   previous   from any token to the one before
///   back, back_attention     the distance back that gets most attention, and how much
///   shift, shift_attention   likewise from a token of the second copy, counted from its
///                            counterpart: 1 is prefix matching; any other is a circuit that passes
///                            tokens on over that distance
///   copying, copying_positive   by its weights (probe/head_copying.h)
void read_induction_heads(const Setup& setup, const std::filesystem::path& run, Json& result);

/// Adds "hop_attention" to the result of a run on `k-hop`: entry [l][n] is the largest mean
/// attention of a head of layer l + 1 to the place 2^n hops back (n = 0 to 4), over the positions
/// that have one.
void read_hop_heads(const Setup& setup, const std::filesystem::path& run, Json& result);

/// Adds to the result of a run on `dyck`: "brackets", entry [l][h] the share of closing brackets
/// from which head h of layer l + 1 attends most to the bracket that opened them; and
/// "bracket_offset", the best share that one fixed distance reaches (arXiv 1906.04341, section 4).
void read_bracket_heads(const Setup& setup, const std::filesystem::path& run, Json& result);

}  // namespace fathom::lab
