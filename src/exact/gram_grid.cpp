#include "exact/gram_grid.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace fathom::exact {
namespace {

using Element = PrimeField::Element;
using Matrix = std::vector<Element>;  // d x d, row by row

/// T(S) = O blockdiag_h(V_h S K_h^T) Q in scalars.
Matrix layer_map(const PrimeField& field, const AttentionShape& shape,
                 const AttentionLayer<Element>& layer, const Matrix& gram) {
  const std::size_t d = shape.width;
  const std::size_t size = shape.head_size();
  Matrix values(d * d);  // V S
  for (std::size_t a = 0; a < d; ++a) {
    for (std::size_t b = 0; b < d; ++b) {
      values[a * d + b] = field.dot(&gram[b], d, &layer.value[a * d], d);
    }
  }
  Matrix keyed(d * d);  // row h d_a + a: sum_b (V_h S K_h^T)_ab Q_h b
  std::vector<Element> products(size);
  for (std::size_t a = 0; a < d; ++a) {
    const std::size_t head = a / size * size;
    for (std::size_t b = 0; b < size; ++b) {
      products[b] = field.dot(&values[a * d], 1, &layer.key[(head + b) * d], d);
    }
    for (std::size_t c = 0; c < d; ++c) {
      keyed[a * d + c] = field.dot(&layer.query[head * d + c], d, products.data(), size);
    }
  }
  Matrix result(d * d);
  for (std::size_t a = 0; a < d; ++a) {
    for (std::size_t b = 0; b < d; ++b) {
      result[a * d + b] = field.dot(&keyed[b], d, &layer.output[a * d], d);
    }
  }
  return result;
}

/// T as a d^2 x d(d+1)/2 matrix acting on the upper triangle of S.
std::vector<double> layer_matrix(const PrimeField& field, const AttentionShape& shape,
                                 const AttentionLayer<Element>& layer) {
  const std::size_t d = shape.width;
  const std::size_t triangle = d * (d + 1) / 2;
  std::vector<double> matrix(d * d * triangle);
  std::size_t column = 0;
  for (std::size_t c = 0; c < d; ++c) {
    for (std::size_t e = c; e < d; ++e, ++column) {
      Matrix unit(d * d, 0);
      unit[c * d + e] = 1;
      unit[e * d + c] = 1;
      const Matrix image = layer_map(field, shape, layer, unit);
      for (std::size_t i = 0; i < d * d; ++i) {
        matrix[i * triangle + column] = field.balanced(image[i]);
      }
    }
  }
  return matrix;
}

Matrix gram_matrix(const PrimeField& field, const Assignments& inputs, std::size_t assignment) {
  const std::size_t d = inputs.width;
  Matrix gram(d * d, 0);
  for (std::size_t j = 0; j < inputs.positions; ++j) {
    const Element* x = inputs.at(assignment, j);
    for (std::size_t a = 0; a < d; ++a) {
      for (std::size_t b = 0; b < d; ++b) {
        gram[a * d + b] = field.add(gram[a * d + b], field.multiply(x[a], x[b]));
      }
    }
  }
  return gram;
}

/// The last layer: a_h and B_h of the output component.
struct Readout {
  std::vector<Element> a;  // H x d
  Matrix b;                // H x d x d
};

Readout read_out(const PrimeField& field, const AttentionShape& shape,
                 const AttentionLayer<Element>& layer) {
  const std::size_t d = shape.width;
  const std::size_t size = shape.head_size();
  Readout out;
  for (std::size_t h = 0; h < shape.heads; ++h) {
    const std::size_t first = h * size;
    for (std::size_t c = 0; c < d; ++c) {
      out.a.push_back(field.dot(&layer.value[first * d + c], d,
                                &layer.output[shape.output_component * d + first], size));
    }
    for (std::size_t c = 0; c < d; ++c) {
      for (std::size_t e = 0; e < d; ++e) {
        Element sum = 0;
        for (std::size_t a = first; a < first + size; ++a) {
          sum = field.add(sum, field.multiply(layer.key[a * d + c], layer.query[a * d + e]));
        }
        out.b.push_back(sum);
      }
    }
  }
  return out;
}

/// What the kernel reads: constants of the network, then one view per row and per loaded node.
struct Plan {
  LaneField field;
  std::size_t width;
  std::size_t heads;
  std::size_t layers;
  std::size_t component;
  bool residual;
  std::vector<std::vector<double>> middle;  // layer matrices of layers 2 .. L-1
  std::vector<double> a;                    // H x d
  std::vector<double> b;                    // H x d x d
};

struct RowView {
  const double* gram;    // d x d
  const double* first;   // T_1(S_A), + 1 with a residual
  const double* x;       // d
  const double* pulled;  // T_1(S_A)^T a_h, H x d, + a_h with a residual
};

struct ColumnView {
  const Lanes* gram;
  const Lanes* first;
  const Lanes* pulled;
};

/// y_i = sum_j M[i rs + j cs] x[j], i < rows, four rows at a time to keep sums in registers.
template <class Factor>
[[gnu::always_inline]] inline void multiply(const LaneField& field, const Factor* matrix,
                                            std::size_t rs, std::size_t cs, std::size_t rows,
                                            std::size_t columns, const Lanes* x, Lanes* y) {
  std::size_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    const Factor* m = matrix + i * rs;
    Lanes s0{}, s1{}, s2{}, s3{};
    for (std::size_t j = 0; j < columns; ++j) {
      s0 += m[j * cs] * x[j];
      s1 += m[j * cs + rs] * x[j];
      s2 += m[j * cs + 2 * rs] * x[j];
      s3 += m[j * cs + 3 * rs] * x[j];
      if (j % kLateSums == kLateSums - 1) {
        s0 = field.reduce(s0);
        s1 = field.reduce(s1);
        s2 = field.reduce(s2);
        s3 = field.reduce(s3);
      }
    }
    y[i] = field.reduce(s0);
    y[i + 1] = field.reduce(s1);
    y[i + 2] = field.reduce(s2);
    y[i + 3] = field.reduce(s3);
  }
  for (; i < rows; ++i) y[i] = field.dot(matrix + i * rs, cs, x, columns);
}

/// S <- T S T^T, T <- T_l(S), x <- T x for one middle layer.
[[gnu::always_inline]] inline void middle_layer(const Plan& plan, const double* layer,
                                                std::size_t d, Lanes* gram, Lanes* map, Lanes* x,
                                                Lanes* scratch) {
  const LaneField& field = plan.field;
  Lanes* product = scratch;              // T S, row by row
  Lanes* triangle = scratch + d * d;     // upper triangle of the new S
  for (std::size_t i = 0; i < d; ++i) {  // S is symmetric: (T S)_i = S T_i
    multiply(field, gram, d, 1, d, d, map + i * d, product + i * d);
  }
  Lanes* next = triangle;
  for (std::size_t i = 0; i < d; ++i) {
    multiply(field, map + i * d, d, 1, d - i, d, product + i * d, next);
    next += d - i;
  }
  next = triangle;
  for (std::size_t i = 0; i < d; ++i) {
    for (std::size_t j = i; j < d; ++j) gram[i * d + j] = gram[j * d + i] = *next++;
  }
  multiply(field, layer, d * (d + 1) / 2, 1, d * d, d * (d + 1) / 2, triangle, map);
  if (plan.residual) {
    for (std::size_t i = 0; i < d; ++i) map[i * d + i] += 1.0;
  }
  multiply(field, map, d, 1, d, d, x, scratch);
  std::copy(scratch, scratch + d, x);
}

/// One entry in eight columns. kWidth fixes d at compile time; 0 leaves it to the plan.
template <std::size_t kWidth>
[[gnu::always_inline]] inline Lanes entry(const Plan& plan, const RowView& row,
                                          const ColumnView& column, Lanes* scratch) {
  const LaneField& field = plan.field;
  const std::size_t d = kWidth == 0 ? plan.width : kWidth;
  Lanes* gram = scratch;
  Lanes* map = gram + d * d;
  Lanes* x = map + d * d;
  Lanes* u = x + d;
  Lanes* v = u + d;
  Lanes* w = v + d;
  Lanes* free = w + d;
  for (std::size_t i = 0; i < d * d; ++i) gram[i] = column.gram[i] + row.gram[i];
  for (std::size_t i = 0; i < d; ++i) x[i] = Lanes{} + row.x[i];
  if (plan.layers >= 2) {
    for (std::size_t i = 0; i < d * d; ++i) map[i] = column.first[i] + row.first[i];
    multiply(field, map, d, 1, d, d, x, u);
    std::copy(u, u + d, x);
    for (const auto& layer : plan.middle) {
      middle_layer(plan, layer.data(), d, gram, map, x, free);
    }
  }
  Lanes y{};
  for (std::size_t h = 0; h < plan.heads; ++h) {
    const double* a = &plan.a[h * d];
    multiply(field, &plan.b[h * d * d], d, 1, d, d, x, u);
    if (plan.layers == 1) {
      multiply(field, gram, d, 1, d, d, u, w);
      y += field.dot(a, 1, w, d);
      continue;
    }
    multiply(field, map, 1, d, d, d, u, v);
    multiply(field, gram, d, 1, d, d, v, w);
    if (plan.layers == 2) {
      for (std::size_t i = 0; i < d; ++i) v[i] = column.pulled[h * d + i] + row.pulled[h * d + i];
      y += field.dot(v, 1, w, d);
    } else {
      multiply(field, map, d, 1, d, d, w, v);
      y += field.dot(a, 1, v, d);
    }
  }
  if (plan.residual) y += x[plan.component];
  return field.reduce(y);
}

template <std::size_t kWidth>
[[gnu::always_inline]] inline void entries(const Plan& plan, const RowView* rows, std::size_t count,
                                           const ColumnView& column, Lanes* scratch,
                                           Lanes* values) {
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = entry<kWidth>(plan, rows[i], column, scratch);
  }
}

/// Small widths get their own loops: their trip counts are too short to be left to run time.
[[gnu::always_inline]] inline void entries_by_width(const Plan& plan, const RowView* rows,
                                                    std::size_t count, const ColumnView& column,
                                                    Lanes* scratch, Lanes* values) {
  switch (plan.width) {
    case 2:
      return entries<2>(plan, rows, count, column, scratch, values);
    case 3:
      return entries<3>(plan, rows, count, column, scratch, values);
    case 4:
      return entries<4>(plan, rows, count, column, scratch, values);
    default:
      return entries<0>(plan, rows, count, column, scratch, values);
  }
}

// The version for this processor is called. The last one is for processors without AVX2, which
// elimination needs: it exists because a default must, so it may be slow and is quick to compile.
[[gnu::target("avx512f")]] void evaluate_rows(const Plan& plan, const RowView* rows,
                                              std::size_t count, const ColumnView& column,
                                              Lanes* scratch, Lanes* values) {
  entries_by_width(plan, rows, count, column, scratch, values);
}
[[gnu::target("fma")]] void evaluate_rows(const Plan& plan, const RowView* rows, std::size_t count,
                                          const ColumnView& column, Lanes* scratch, Lanes* values) {
  entries_by_width(plan, rows, count, column, scratch, values);
}
[[gnu::target("default")]] void evaluate_rows(const Plan& plan, const RowView* rows,
                                              std::size_t count, const ColumnView& column,
                                              Lanes* scratch, Lanes* values) {
  entries<0>(plan, rows, count, column, scratch, values);
}

class GramGrid final : public GridFunction {
 public:
  GramGrid(const AttentionShape& shape, const AttentionWeights<Element>& weights,
           std::size_t output_row, const Assignments& rows, const Assignments& columns,
           std::size_t nodes, const PrimeField& field)
      : field_(field),
        shape_(shape),
        nodes_(nodes),
        first_layer_(weights.front()),
        plan_{LaneField(field),
              shape.width,
              shape.heads,
              shape.layers,
              shape.output_component,
              shape.residual,
              {},
              {},
              {}} {
    const Readout readout = read_out(field, shape, weights.back());
    a_ = readout.a;
    plan_.a = balanced_values(readout.a, field);
    plan_.b = balanced_values(readout.b, field);
    for (std::size_t l = 1; l + 1 < shape.layers; ++l) {
      plan_.middle.push_back(layer_matrix(field, shape, weights[l]));
    }
    const std::size_t d = shape.width;
    scratch_.resize(2 * d * d + 4 * d + d * d + d * (d + 1) / 2);
    load_rows(rows, output_row);
    prepare_columns(columns);
  }

  void load_columns(std::size_t first_column) override {
    const std::size_t size = record();
    loaded_.resize(nodes_ * size);
    for (std::size_t node = 0; node < nodes_; ++node) {
      const Element scale = field_.multiply(grid_node(node), grid_node(node));
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const std::size_t column = std::min(first_column + lane, columns_.size() / size - 1);
        const Element* values = &columns_[column * size];
        for (std::size_t i = 0; i < size; ++i) {
          loaded_[node * size + i][lane] = field_.balanced(field_.multiply(scale, values[i]));
        }
      }
    }
  }

  void evaluate(std::size_t node, std::size_t first_row, std::size_t rows,
                Lanes* values) const override {
    const std::size_t d = shape_.width;
    const Lanes* column = &loaded_[node * record()];
    evaluate_rows(plan_, &views_[first_row], rows, {column, column + d * d, column + 2 * d * d},
                  scratch_.data(), values);
  }

 private:
  /// Numbers kept per row or column: S, T_1(S), T_1(S)^T a_h.
  std::size_t record() const { return (2 * shape_.width + shape_.heads) * shape_.width; }

  /// Appends the record of one Gram matrix; rows carry the residual's identity.
  void append(std::vector<Element>& target, const Matrix& gram, bool residual) const {
    const std::size_t d = shape_.width;
    Matrix first = layer_map(field_, shape_, first_layer_, gram);
    if (residual) {
      for (std::size_t i = 0; i < d; ++i) first[i * d + i] = field_.add(first[i * d + i], 1);
    }
    target.insert(target.end(), gram.begin(), gram.end());
    target.insert(target.end(), first.begin(), first.end());
    for (std::size_t h = 0; h < shape_.heads; ++h) {
      for (std::size_t i = 0; i < d; ++i) {
        target.push_back(field_.dot(&first[i], d, &a_[h * d], d));
      }
    }
  }

  void load_rows(const Assignments& rows, std::size_t output_row) {
    const std::size_t d = shape_.width;
    std::vector<Element> values;
    values.reserve(rows.count * (record() + d));
    for (std::size_t n = 0; n < rows.count; ++n) {
      append(values, gram_matrix(field_, rows, n), shape_.residual);
      const Element* x = rows.at(n, output_row);
      values.insert(values.end(), x, x + d);
    }
    rows_ = balanced_values(values, field_);
    for (std::size_t n = 0; n < rows.count; ++n) {
      const double* at = &rows_[n * (record() + d)];
      views_.push_back({at, at + d * d, at + record(), at + 2 * d * d});
    }
  }

  void prepare_columns(const Assignments& columns) {
    columns_.reserve(columns.count * record());
    for (std::size_t n = 0; n < columns.count; ++n) {
      append(columns_, gram_matrix(field_, columns, n), false);
    }
  }

  PrimeField field_;
  AttentionShape shape_;
  std::size_t nodes_;
  AttentionLayer<Element> first_layer_;
  std::vector<Element> a_;
  Plan plan_;
  std::vector<double> rows_;
  std::vector<RowView> views_;
  std::vector<Element> columns_;
  LaneVector loaded_;
  mutable LaneVector scratch_;
};

}  // namespace

std::unique_ptr<GridFunction> gram_grid(const AttentionShape& shape,
                                        const AttentionWeights<PrimeField::Element>& weights,
                                        std::size_t output_row, const Assignments& rows,
                                        const Assignments& columns, std::size_t nodes,
                                        const PrimeField& field) {
  if (shape.causal) throw InternalError("a causal mask has no Gram form");
  if (shape.width > kMaxGramWidth) {
    throw ConfigError(
        fmt::format("width {} is above {}, the limit of exact sums", shape.width, kMaxGramWidth));
  }
  return std::make_unique<GramGrid>(shape, weights, output_row, rows, columns, nodes, field);
}

OperationCount gram_operations(const AttentionShape& shape) {
  const double d = static_cast<double>(shape.width);
  const double H = static_cast<double>(shape.heads);
  const double triangle = d * (d + 1) / 2;
  if (shape.layers == 1) return {H * (2 * d * d + d), H * (2 * d + 1) + 1};
  const double middle = static_cast<double>(shape.layers - 2);
  OperationCount count;
  count.multiply_adds = d * d + middle * (d * d * d + triangle * d + d * d * triangle + d * d);
  count.reductions = d + middle * (d * d + triangle + d * d + d);
  const double last = shape.layers == 2 ? 3 : 4;  // products with B, T, S (and T again)
  count.multiply_adds += H * (last * d * d + d);
  count.reductions += H * (last * d + 1) + 1;
  return count;
}

}  // namespace fathom::exact
