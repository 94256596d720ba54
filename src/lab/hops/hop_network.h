// Explicit weights that solve k-hop in floor(log2 k) + 2 layers of one head and constant width
// (arXiv 2402.09268), all of them integers.
//
// Position 0 holds a null token, the characters follow. Layer 1: position i attends to the previous
// occurrence j of its character (to the null token when there is none) and reads the number j + 1:
// the pointer of one hop, one layer earlier than the character there. Layer l >= 2: with the
// pointer p of 2^(l-2) hops it attends to position p and reads the pointer there (2^(l-1) hops)
// and, where bit l-2 of k is set, the answer there in place of its own. So layer l answers up to
// 2^(l-1) - 1 hops, which is where floor(log2 k) + 2 comes from. (With a previous-token layer
// first, as induction heads are usually explained, the pointer comes a layer later and k = 3 would
// need four layers.)
//
// Scores: layer 1  2 M [same character] + j, and M for the null token, M > n: the rightmost match,
// then the null token, then the rest. Layer l  2 p j - j^2 = p^2 - (p - j)^2. All distinct, and
// apart by at least 1: hard attention is exact, and softmax at inverse temperature beta puts at
// most n e^-beta outside the target position. The mask is strict, j < i; pointers lead to the left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/device.h"
#include "lab/frame/matrix.h"
#include "lab/hops/hop_task.h"

namespace fathom::lab {

using WholeMatrix = Matrix<std::int64_t>;

/// x_i += write read x_j for the j that <query x_i, key x_j> picks; then x_i += update x_i.
struct HopLayer {
  WholeMatrix query, key;  // rank x width
  WholeMatrix read;        // values x width
  WholeMatrix write;       // width x values
  WholeMatrix update;      // width x width
};

struct HopNetwork {
  std::size_t length = 0;  // characters; positions are one more
  std::size_t alphabet = 0;
  WholeMatrix tokens;     // (alphabet + 1) x width, the null token first
  WholeMatrix positions;  // (length + 1) x width
  std::vector<HopLayer> layers;
  std::size_t answer = 0;  // first of `alphabet` coordinates
  std::size_t one = 0;     // coordinate that is always 1

  std::size_t width() const { return tokens.columns; }
};

/// floor(log2 k) + 2.
std::size_t hop_depth(std::size_t hops);

/// With fewer layers than hop_depth the highest bits of k stay undone.
HopNetwork build_hop_network(std::size_t hops, std::size_t layers, std::size_t length,
                             std::size_t alphabet);

/// Answers by hard attention in integer arithmetic.
std::vector<int> run_hard(const HopNetwork& network, const Characters& sequence);

/// Answers by the engine's softmax attention, in f32, at inverse temperature `beta`; rows of
/// answers in the order of the sequences.
std::vector<std::vector<int>> run_engine(const HopNetwork& network,
                                         const std::vector<Characters>& sequences, double beta,
                                         const engine::Device& device);

}  // namespace fathom::lab
