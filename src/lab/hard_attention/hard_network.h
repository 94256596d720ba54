// Explicit weights of a masked hard-attention network, compiled from a B-RASP program.
//
// All weights and activations are integers, so the network is evaluated exactly. A position's
// stream has a coordinate for the constant 1, for every vector of the program and for the
// auxiliary values below. A layer is
//
//   attention: head h of query i scores the keys j < i by <Wq x_i, Wk x_j>, takes the largest, the
//              rightmost among equals, and adds Wv x_j to the stream (nothing where no j exists);
//   feed-forward: x += D relu(U x + u).
//
// An attention step with score S(i, j), value V(i, j) and default D(i) becomes one head. With
// I the vectors that S names at i and J those at j, the stream carries [I = alpha] for each
// assignment alpha, and the keys carry "S holds for (alpha, j)"; their product is S(i, j), 0 or 1.
// The head copies 1 and the vectors of J (and of V) from the position it finds. The feed-forward
// part then sees everything that decides the answer, as a truth table of ReLU units, one for each
// row with a 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lab/hard_attention/brasp.h"

namespace fathom::lab {

/// Rows of integers.
struct IntegerMatrix {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<std::int32_t> values;

  IntegerMatrix() = default;
  IntegerMatrix(std::size_t r, std::size_t c) : rows(r), columns(c), values(r * c) {}
  std::int32_t& at(std::size_t i, std::size_t j) { return values[i * columns + j]; }
  std::int32_t at(std::size_t i, std::size_t j) const { return values[i * columns + j]; }
};

struct HardHead {
  IntegerMatrix query, key;  // rank x width
  IntegerMatrix value;       // width x width
};

struct HardLayer {
  std::vector<HardHead> heads;
  IntegerMatrix up;  // hidden x width
  std::vector<std::int32_t> bias;
  IntegerMatrix down;  // width x hidden
};

struct HardNetwork {
  std::string alphabet;
  IntegerMatrix embedding;  // (letters + 1) x width, the end marker last
  std::vector<HardLayer> layers;
  std::size_t answer = 0;  // coordinate

  std::size_t width() const { return embedding.columns; }
  /// The answer at the end marker.
  std::int64_t run(std::string_view word) const;
  std::size_t weights() const;  // how many are not 0
};

/// As many layers as the program is deep. ConfigError when a truth table would have more than 2^12
/// rows.
HardNetwork compile_program(const BraspProgram& program);

}  // namespace fathom::lab
