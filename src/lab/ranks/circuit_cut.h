// The least cut of a convolutional arithmetic circuit between the two sides of a partition.
//
// Read the circuit as a network of tensors. Every 1x1 convolution is put on side A or B. A product
// of channels whose convolutions are on both sides costs r, an input that feeds a convolution on
// the other side costs M. The costs of a choice multiply to an upper bound on the separation rank;
// the least cut is the least of these bounds (arXiv 1704.01552, for weights shared or not).
#pragma once

#include <cstddef>
#include <string_view>

namespace fathom::lab {

/// `partition` holds the sides ('0', '1') of a power of two of positions in the order of pooling:
/// neighbours meet first, then pairs of neighbours.
double least_cut(std::string_view partition, std::size_t channels, std::size_t inputs);

}  // namespace fathom::lab
