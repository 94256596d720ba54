// Blocks of keys and values mixed by a matrix that is nearly doubly stochastic (KeyMap::sort in
// keys.h), for one key head of one sequence on the host.
//
// With m_I the mean key of block I: R_IJ = <m_I, w_J>, Z = R, then kSinkhornRounds times
// Z_IJ -= log sum_J exp Z_IJ and Z_IJ -= log sum_I exp Z_IJ; S = exp Z. Backward of one such step
// is dZ -= exp(Z') sum dZ', with sums over the same row or column and Z' the result of the step.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "engine/ops/keys/keys.h"

namespace fathom::engine {

template <class Number>
class BlockSorter {
 public:
  explicit BlockSorter(const KeyShape& shape)
      : blocks_(shape.context / shape.block),
        length_(shape.block),
        size_(shape.head_size),
        wide_(2 * shape.head_size),
        means_(at(blocks_ * size_)),
        steps_(at((kSteps + 1) * blocks_ * blocks_)),
        slopes_(at(blocks_ * blocks_)) {}

  /// x, y [T, 2 K]: a key and a value; rows of w are `stride` apart.
  void forward(const Number* x, const Number* w, std::int64_t stride, Number* y) {
    find_matrix(x, w, stride);
    std::fill(y, y + blocks_ * length_ * wide_, Number{0});
    for (std::int64_t i = 0; i < blocks_; ++i) {
      for (std::int64_t j = 0; j < blocks_; ++j) add_block(share(i, j), x, j, y, i);
    }
  }

  /// Needs no preceding forward. Overwrites dx [T, 2 K] and the K columns of d_w.
  void backward(const Number* x, const Number* dy, const Number* w, std::int64_t stride, Number* dx,
                Number* d_w) {
    find_matrix(x, w, stride);
    std::fill(dx, dx + blocks_ * length_ * wide_, Number{0});
    for (std::int64_t i = 0; i < blocks_; ++i) {
      for (std::int64_t j = 0; j < blocks_; ++j) {
        slopes_[at(i * blocks_ + j)] = share(i, j) * block_product(dy, i, x, j);
        add_block(share(i, j), dy, i, dx, j);
      }
    }
    for (std::int64_t step = kSteps; step > 0; --step) undo_step(step);
    spread_slopes(w, stride, dx, d_w);
  }

 private:
  static constexpr std::int64_t kSteps = 2 * std::int64_t{kSinkhornRounds};
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  Number* step_matrix(std::int64_t step) { return steps_.data() + step * blocks_ * blocks_; }
  Number share(std::int64_t i, std::int64_t j) {
    return std::exp(step_matrix(kSteps)[i * blocks_ + j]);
  }

  void find_matrix(const Number* x, const Number* w, std::int64_t stride) {
    std::fill(means_.begin(), means_.end(), Number{0});
    for (std::int64_t t = 0; t < blocks_ * length_; ++t) {
      for (std::int64_t c = 0; c < size_; ++c) {
        means_[at(t / length_ * size_ + c)] += x[t * wide_ + c] / static_cast<Number>(length_);
      }
    }
    for (std::int64_t i = 0; i < blocks_; ++i) {
      for (std::int64_t j = 0; j < blocks_; ++j) {
        Number sum = 0;
        for (std::int64_t c = 0; c < size_; ++c)
          sum += means_[at(i * size_ + c)] * w[j * stride + c];
        step_matrix(0)[i * blocks_ + j] = sum;
      }
    }
    for (std::int64_t step = 1; step <= kSteps; ++step) take_step(step);
  }

  /// Place of element e of line n: odd steps normalise rows, even ones columns.
  std::int64_t place(std::int64_t step, std::int64_t n, std::int64_t e) const {
    return step % 2 == 1 ? n * blocks_ + e : e * blocks_ + n;
  }
  void take_step(std::int64_t step) {
    const Number* from = step_matrix(step - 1);
    Number* to = step_matrix(step);
    for (std::int64_t n = 0; n < blocks_; ++n) {
      Number top = from[place(step, n, 0)], sum = 0;
      for (std::int64_t e = 0; e < blocks_; ++e) top = std::max(top, from[place(step, n, e)]);
      for (std::int64_t e = 0; e < blocks_; ++e) sum += std::exp(from[place(step, n, e)] - top);
      const Number total = top + std::log(sum);
      for (std::int64_t e = 0; e < blocks_; ++e) {
        to[place(step, n, e)] = from[place(step, n, e)] - total;
      }
    }
  }
  void undo_step(std::int64_t step) {
    const Number* made = step_matrix(step);
    for (std::int64_t n = 0; n < blocks_; ++n) {
      Number sum = 0;
      for (std::int64_t e = 0; e < blocks_; ++e) sum += slopes_[at(place(step, n, e))];
      for (std::int64_t e = 0; e < blocks_; ++e) {
        slopes_[at(place(step, n, e))] -= std::exp(made[place(step, n, e)]) * sum;
      }
    }
  }

  void add_block(Number factor, const Number* from, std::int64_t j, Number* to,
                 std::int64_t i) const {
    const Number* source = from + j * length_ * wide_;
    Number* target = to + i * length_ * wide_;
    for (std::int64_t e = 0; e < length_ * wide_; ++e) target[e] += factor * source[e];
  }
  Number block_product(const Number* a, std::int64_t i, const Number* b, std::int64_t j) const {
    Number sum = 0;
    for (std::int64_t e = 0; e < length_ * wide_; ++e) {
      sum += a[i * length_ * wide_ + e] * b[j * length_ * wide_ + e];
    }
    return sum;
  }
  /// From the gradient of R to those of the means, and so of the keys, and of w.
  void spread_slopes(const Number* w, std::int64_t stride, Number* dx, Number* d_w) const {
    for (std::int64_t i = 0; i < blocks_; ++i) {
      for (std::int64_t c = 0; c < size_; ++c) {
        Number mean = 0, weight = 0;
        for (std::int64_t j = 0; j < blocks_; ++j) {
          mean += slopes_[at(i * blocks_ + j)] * w[j * stride + c];
          weight += slopes_[at(j * blocks_ + i)] * means_[at(j * size_ + c)];
        }
        d_w[i * stride + c] = weight;
        for (std::int64_t t = i * length_; t < (i + 1) * length_; ++t) {
          dx[t * wide_ + c] += mean / static_cast<Number>(length_);
        }
      }
    }
  }

  std::int64_t blocks_, length_, size_, wide_;
  std::vector<Number> means_, steps_, slopes_;
};

}  // namespace fathom::engine
