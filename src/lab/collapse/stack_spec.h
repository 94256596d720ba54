// A stack of random softmax attention layers: the set-up in which rank collapse is measured.
//
// X has N(0, 1) entries, n tokens of width d. A layer of H heads of size d/H computes
//
//   Y = sum_h softmax( X Wq_h (X Wk_h)^T / sqrt(d/H) ) X Wv_h Wo_h
//
// Wq and Wk have standard deviation s / sqrt d, Wv and Wo 1 / sqrt d. Then X <- Y, or X + Y with
// skips. With an MLP, X <- relu(X U) D (or X plus that), U of d x 4d with standard deviation
// 1 / sqrt d, D of 4d x d with 1 / sqrt(4d). With norms every row is normalised to mean 0 and
// variance 1 (no gain, bias or epsilon): X once at the start, and after each of these updates.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/frame/matrix.h"

namespace fathom::lab {

struct StackSpec {
  std::size_t tokens = 16;
  std::size_t width = 32;
  std::size_t heads = 2;
  std::size_t layers = 12;
  double scale = 1;
  bool causal = false;
  std::size_t window = 0;  // keys less than this far away; 0: all
  bool skip = false;
  bool norm = false;
  bool mlp = false;

  std::size_t head_size() const { return width / heads; }
  bool sees(std::size_t query, std::size_t key) const {
    if (causal && key > query) return false;
    return window == 0 || (query < key ? key - query : query - key) < window;
  }
  /// Every row sees every row: then attention is close to one common average of the tokens.
  bool all_see_all() const { return !causal && (window == 0 || window >= tokens); }
  std::string key() const;
};

/// ConfigError unless heads divide the width and there are two tokens to compare.
void validate(const StackSpec& spec);

struct HeadWeights {
  Matrix<double> query, key, value;  // d x d/H
  Matrix<double> output;             // d/H x d
};
struct LayerWeights {
  std::vector<HeadWeights> heads;
  Matrix<double> up, down;  // with an MLP
};
struct StackDraw {
  Matrix<double> x;
  std::vector<LayerWeights> layers;
};

/// A pure function of spec and seed.
StackDraw draw_stack(const StackSpec& spec, std::uint64_t seed);

/// Multiply-adds of one forward pass, for estimates.
double stack_operations(const StackSpec& spec);

}  // namespace fathom::lab
