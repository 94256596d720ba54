#include "exact/direct_grid.h"

#include <algorithm>
#include <functional>

namespace fathom::exact {
namespace {

// One entry in eight columns; x holds the sequence and is overwritten.

__attribute__((target_clones("avx512f", "fma", "default"))) void attention_entry(
    const LaneField& field, const AttentionShape& shape, const AttentionWeights<double>& weights,
    Lanes* x, Lanes* scratch, Lanes* y) {
  *y = attention_output(field, shape, weights, x, scratch);
}

__attribute__((target_clones("avx512f", "fma", "default"))) void sliced_entry(
    const LaneField& field, const SlicedShape& shape, const AttentionWeights<double>& weights,
    Lanes* x, Lanes* scratch, Lanes* y) {
  *y = sliced_output(field, shape, weights, x, scratch);
}

__attribute__((target_clones("avx512f", "fma", "default"))) void conv_entry(
    const LaneField& field, const ConvShape& shape, const ConvWeights<double>& weights,
    const std::vector<std::size_t>& order, const Lanes* x, Lanes* scratch, Lanes* y) {
  *y = conv_output(field, shape, weights, order, x, scratch);
}

__attribute__((target_clones("avx512f", "fma", "default"))) void recurrent_entry(
    const LaneField& field, const RecurrentShape& shape, const RecurrentWeights<double>& weights,
    const Lanes* x, Lanes* scratch, Lanes* y) {
  *y = recurrent_output(field, shape, weights, x, scratch);
}

/// (sequence, scratch, value)
using Entry = std::function<void(Lanes*, Lanes*, Lanes*)>;

/// Places row and column inputs into one sequence and passes it to the network.
class DirectGrid final : public GridFunction {
 public:
  DirectGrid(Entry entry, Sides sides, const Assignments& rows, const Assignments& columns,
             std::size_t nodes, std::size_t scratch, const PrimeField& field)
      : entry_(std::move(entry)),
        sides_(std::move(sides)),
        width_(rows.width),
        rows_(balanced_values(rows.values, field)),
        columns_(columns),
        field_(field),
        nodes_(nodes),
        loaded_(nodes * columns.positions * columns.width),
        sequence_((rows.positions + columns.positions) * rows.width),
        scratch_(scratch) {}

  void load_columns(std::size_t first_column) override {
    const std::size_t size = columns_.positions * width_;
    for (std::size_t node = 0; node < nodes_; ++node) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const std::size_t column = std::min(first_column + lane, columns_.count - 1);
        for (std::size_t i = 0; i < size; ++i) {
          const auto scaled = field_.multiply(grid_node(node), columns_.values[column * size + i]);
          loaded_[node * size + i][lane] = field_.balanced(scaled);
        }
      }
    }
  }

  void evaluate(std::size_t node, std::size_t first_row, std::size_t rows,
                Lanes* values) const override {
    for (std::size_t i = 0; i < rows; ++i) {
      place(node, first_row + i);
      entry_(sequence_.data(), scratch_.data(), &values[i]);
    }
  }

 private:
  void place(std::size_t node, std::size_t row) const {
    const double* values = rows_.data() + row * sides_.rows.size() * width_;
    for (const std::size_t position : sides_.rows) {
      for (std::size_t a = 0; a < width_; ++a) {
        sequence_[position * width_ + a] = Lanes{} + *values++;
      }
    }
    const Lanes* column = loaded_.data() + node * sides_.columns.size() * width_;
    for (const std::size_t position : sides_.columns) {
      for (std::size_t a = 0; a < width_; ++a) sequence_[position * width_ + a] = *column++;
    }
  }

  Entry entry_;
  Sides sides_;
  std::size_t width_;
  std::vector<double> rows_;
  Assignments columns_;
  PrimeField field_;
  std::size_t nodes_;
  LaneVector loaded_;
  mutable LaneVector sequence_;
  mutable LaneVector scratch_;
};

}  // namespace

std::unique_ptr<GridFunction> direct_attention_grid(
    const AttentionShape& shape, const AttentionWeights<PrimeField::Element>& weights, Sides sides,
    const Assignments& rows, const Assignments& columns, std::size_t nodes,
    const PrimeField& field) {
  const Entry entry = [lanes = LaneField(field), shape, w = balanced_weights(weights, field)](
                          Lanes* x, Lanes* scratch, Lanes* y) {
    attention_entry(lanes, shape, w, x, scratch, y);
  };
  return std::make_unique<DirectGrid>(entry, std::move(sides), rows, columns, nodes,
                                      attention_scratch(shape), field);
}

std::unique_ptr<GridFunction> sliced_attention_grid(
    const SlicedShape& shape, const AttentionWeights<PrimeField::Element>& weights, Sides sides,
    const Assignments& rows, const Assignments& columns, const PrimeField& field) {
  const Entry entry = [lanes = LaneField(field), shape, w = balanced_weights(weights, field)](
                          Lanes* x, Lanes* scratch, Lanes* y) {
    sliced_entry(lanes, shape, w, x, scratch, y);
  };
  return std::make_unique<DirectGrid>(entry, std::move(sides), rows, columns, 1,
                                      sliced_scratch(shape), field);
}

std::unique_ptr<GridFunction> conv_grid(const ConvShape& shape,
                                        const ConvWeights<PrimeField::Element>& weights,
                                        Sides sides, const Assignments& rows,
                                        const Assignments& columns, const PrimeField& field) {
  const Entry entry = [lanes = LaneField(field), shape, w = balanced_weights(weights, field),
                       order = pooling_order(shape)](Lanes* x, Lanes* scratch, Lanes* y) {
    conv_entry(lanes, shape, w, order, x, scratch, y);
  };
  return std::make_unique<DirectGrid>(entry, std::move(sides), rows, columns, 1,
                                      conv_scratch(shape), field);
}

std::unique_ptr<GridFunction> recurrent_grid(const RecurrentShape& shape,
                                             const RecurrentWeights<PrimeField::Element>& weights,
                                             Sides sides, const Assignments& rows,
                                             const Assignments& columns, const PrimeField& field) {
  const Entry entry = [lanes = LaneField(field), shape, w = balanced_weights(weights, field)](
                          Lanes* x, Lanes* scratch, Lanes* y) {
    recurrent_entry(lanes, shape, w, x, scratch, y);
  };
  return std::make_unique<DirectGrid>(entry, std::move(sides), rows, columns, 1,
                                      recurrent_scratch(shape), field);
}

}  // namespace fathom::exact
