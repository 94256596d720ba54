#include "lab/hard_attention/hard_network.h"

#include <algorithm>
#include <map>

#include "core/error.h"

namespace fathom::lab {
namespace {

using FormulaKind = BooleanFormula::Kind;

constexpr std::size_t kMaxTableInputs = 12;
constexpr std::size_t kOne = 0;  // coordinate of the constant 1

void collect(const BooleanFormula& formula, FormulaKind kind, std::vector<std::size_t>& vectors) {
  if (formula.kind == kind &&
      std::find(vectors.begin(), vectors.end(), formula.vector) == vectors.end()) {
    vectors.push_back(formula.vector);
  }
  for (const BooleanFormula& part : formula.parts) collect(part, kind, vectors);
}

/// Bits of `row` at the places of `vectors`.
std::vector<bool> assignment(std::size_t size, const std::vector<std::size_t>& vectors,
                             std::size_t row) {
  std::vector<bool> bits(size);
  for (std::size_t b = 0; b < vectors.size(); ++b) bits[vectors[b]] = (row >> b & 1) != 0;
  return bits;
}

/// Where an attention step lives in the stream.
struct HeadPlan {
  std::size_t statement = 0;
  std::vector<std::size_t> at_i;              // I: vectors that the score names at i
  std::vector<std::size_t> at_j;              // J: vectors that the score or the value name at j
  std::size_t found = 0;                      // coordinate: whether a position was found
  std::map<std::size_t, std::size_t> copies;  // vector of J -> coordinate of its copy
  std::vector<std::size_t> queries, keys;     // coordinates of [I = alpha] and S(alpha, j)
  std::vector<std::size_t> rows;              // their alphas
};

class Compiler {
 public:
  explicit Compiler(const BraspProgram& program)
      : program_(program), depths_(program.depths()), size_(depths_.size()) {
    width_ = 1 + size_;
    heads_.resize(program.depth() + 1);
    for (std::size_t s = 0; s < program.statements.size(); ++s) {
      if (program.statements[s].attention) add_head(s);
    }
  }

  HardNetwork run() {
    HardNetwork network;
    network.alphabet = program_.alphabet;
    network.answer = coordinate(size_ - 1);
    network.embedding = embedding();
    for (std::size_t t = 1; t < heads_.size(); ++t) network.layers.push_back(layer(t));
    return network;
  }

 private:
  static std::size_t coordinate(std::size_t vector) { return 1 + vector; }
  std::size_t first_statement() const { return program_.alphabet.size() + 1; }

  void add_head(std::size_t s) {
    const BraspStatement& statement = program_.statements[s];
    HeadPlan head;
    head.statement = s;
    collect(statement.score, FormulaKind::vector_i, head.at_i);
    collect(statement.score, FormulaKind::vector_j, head.at_j);
    const std::vector<std::size_t> score_j = head.at_j;
    collect(statement.value, FormulaKind::vector_j, head.at_j);
    check_size(head.at_i.size() + score_j.size());
    head.found = width_++;
    for (const std::size_t vector : head.at_j) head.copies[vector] = width_++;
    for (std::size_t row = 0; row < std::size_t{1} << head.at_i.size(); ++row) {
      head.rows.push_back(row);
      head.queries.push_back(head.at_i.empty() ? kOne : width_++);
      head.keys.push_back(width_++);
    }
    heads_[depths_[first_statement() + s]].push_back(std::move(head));
  }

  static void check_size(std::size_t inputs) {
    if (inputs > kMaxTableInputs) {
      throw ConfigError("an attention step names too many vectors for a truth table");
    }
  }

  /// The head of layer `t` that computes a vector, or null.
  const HeadPlan* head_of(std::size_t vector, std::size_t t) const {
    for (const HeadPlan& head : heads_[t]) {
      if (first_statement() + head.statement == vector) return &head;
    }
    return nullptr;
  }

  // A vector's value after the attention of layer t, as a function of the stream there. Vectors of
  // lower depth are coordinates; those of depth t follow from copies and coordinates.

  bool is_old(std::size_t vector, std::size_t t) const {
    return depths_[vector] < t || vector < first_statement();
  }

  void add_input(std::size_t c, std::vector<std::size_t>& inputs) const {
    if (std::find(inputs.begin(), inputs.end(), c) == inputs.end()) inputs.push_back(c);
  }

  void inputs_of_formula(const BooleanFormula& formula, std::size_t t,
                         std::vector<std::size_t>& inputs) const {
    std::vector<std::size_t> vectors;
    collect(formula, FormulaKind::vector_i, vectors);
    for (const std::size_t vector : vectors) inputs_of(vector, t, inputs);
  }

  void inputs_of(std::size_t vector, std::size_t t, std::vector<std::size_t>& inputs) const {
    if (is_old(vector, t)) return add_input(coordinate(vector), inputs);
    const BraspStatement& statement = program_.statements[vector - first_statement()];
    if (const HeadPlan* head = head_of(vector, t)) {
      add_input(head->found, inputs);
      for (const auto& [source, copy] : head->copies) add_input(copy, inputs);
      inputs_of_formula(statement.score, t, inputs);
      inputs_of_formula(statement.otherwise, t, inputs);
    }
    inputs_of_formula(statement.value, t, inputs);
  }

  bool value_of(std::size_t vector, std::size_t t, const std::vector<bool>& stream) const {
    if (is_old(vector, t)) return stream[coordinate(vector)];
    const BraspStatement& statement = program_.statements[vector - first_statement()];
    std::vector<bool> here(size_);
    for (std::size_t v = 0; v < vector; ++v) {
      if (depths_[v] <= t) here[v] = value_of(v, t, stream);
    }
    const HeadPlan* head = head_of(vector, t);
    if (head == nullptr) return statement.value.evaluate(here, here);
    std::vector<bool> there(size_);
    for (const auto& [source, copy] : head->copies) there[source] = stream[copy];
    const bool match = stream[head->found] && statement.score.evaluate(here, there);
    return match ? statement.value.evaluate(here, there) : statement.otherwise.evaluate(here, here);
  }

  /// Everything that must be in the stream before layer t + 1: vectors of depth t, and what its
  /// heads compare. Calls emit(coordinate, vectors it depends on, value as a function of them).
  template <class Emit>
  void for_each_new(std::size_t t, const Emit& emit) const {
    for (std::size_t vector = 0; vector < size_; ++vector) {
      if (depths_[vector] != t || (t > 0 && is_old(vector, t))) continue;
      emit(coordinate(vector), std::vector<std::size_t>{vector},
           [vector](const std::vector<bool>& values) { return static_cast<bool>(values[vector]); });
    }
    if (t + 1 >= heads_.size()) return;
    for (const HeadPlan& head : heads_[t + 1]) {
      const BooleanFormula& score = program_.statements[head.statement].score;
      std::vector<std::size_t> score_j;
      collect(score, FormulaKind::vector_j, score_j);
      for (std::size_t r = 0; r < head.rows.size(); ++r) {
        const std::vector<bool> alpha = assignment(size_, head.at_i, head.rows[r]);
        emit(head.keys[r], score_j, [&score, alpha](const std::vector<bool>& values) {
          return score.evaluate(alpha, values);
        });
        if (head.queries[r] == kOne) continue;
        emit(head.queries[r], head.at_i,
             [alpha, at_i = head.at_i](const std::vector<bool>& values) {
               return std::all_of(at_i.begin(), at_i.end(),
                                  [&](std::size_t v) { return values[v] == alpha[v]; });
             });
      }
    }
  }

  IntegerMatrix embedding() const {
    const std::size_t letters = first_statement();
    IntegerMatrix table(letters, width_);
    for (std::size_t letter = 0; letter < letters; ++letter) {
      std::vector<bool> values(size_);
      values[letter] = true;
      for (std::size_t v = letters; v < size_; ++v) {
        if (depths_[v] == 0) {
          values[v] = program_.statements[v - letters].value.evaluate(values, values);
        }
      }
      table.at(letter, kOne) = 1;
      for_each_new(0, [&](std::size_t c, const auto&, const auto& value) {
        table.at(letter, c) = value(values) ? 1 : 0;
      });
    }
    return table;
  }

  HardLayer layer(std::size_t t) const {
    HardLayer layer;
    for (const HeadPlan& plan : heads_[t]) {
      HardHead head{IntegerMatrix(plan.rows.size(), width_),
                    IntegerMatrix(plan.rows.size(), width_), IntegerMatrix(width_, width_)};
      for (std::size_t r = 0; r < plan.rows.size(); ++r) {
        head.query.at(r, plan.queries[r]) = 1;
        head.key.at(r, plan.keys[r]) = 1;
      }
      head.value.at(plan.found, kOne) = 1;
      for (const auto& [source, copy] : plan.copies) head.value.at(copy, coordinate(source)) = 1;
      layer.heads.push_back(std::move(head));
    }
    add_tables(t, layer);
    return layer;
  }

  /// One ReLU unit for every row of every truth table that has a 1.
  void add_tables(std::size_t t, HardLayer& layer) const {
    struct Unit {
      std::vector<std::size_t> inputs;
      std::vector<bool> stream;
      std::size_t target;
    };
    std::vector<Unit> units;
    for_each_new(
        t, [&](std::size_t target, const std::vector<std::size_t>& vectors, const auto& value) {
          std::vector<std::size_t> inputs;
          for (const std::size_t vector : vectors) inputs_of(vector, t, inputs);
          check_size(inputs.size());
          for (std::size_t row = 0; row < std::size_t{1} << inputs.size(); ++row) {
            const std::vector<bool> stream = assignment(width_, inputs, row);
            std::vector<bool> values(size_);
            for (const std::size_t vector : vectors) values[vector] = value_of(vector, t, stream);
            if (value(values)) units.push_back({inputs, stream, target});
          }
        });
    layer.up = IntegerMatrix(units.size(), width_);
    layer.down = IntegerMatrix(width_, units.size());
    for (std::size_t u = 0; u < units.size(); ++u) {
      std::int32_t ones = 0;
      for (const std::size_t c : units[u].inputs) {
        layer.up.at(u, c) = units[u].stream[c] ? 1 : -1;
        ones += units[u].stream[c] ? 1 : 0;
      }
      layer.bias.push_back(1 - ones);
      layer.down.at(units[u].target, u) = 1;
    }
  }

  const BraspProgram& program_;
  std::vector<std::size_t> depths_;
  std::size_t size_;  // vectors
  std::size_t width_ = 0;
  std::vector<std::vector<HeadPlan>> heads_;  // by layer, from 1
};

using Stream = std::vector<std::int64_t>;

Stream multiply(const IntegerMatrix& matrix, const Stream& x) {
  Stream y(matrix.rows, 0);
  for (std::size_t i = 0; i < matrix.rows; ++i) {
    for (std::size_t j = 0; j < matrix.columns; ++j) y[i] += matrix.at(i, j) * x[j];
  }
  return y;
}

/// The rightmost key j < i with the largest score.
std::size_t attended(const Stream& query, const std::vector<Stream>& keys, std::size_t i) {
  std::size_t best = 0;
  std::int64_t largest = 0;
  for (std::size_t j = 0; j < i; ++j) {
    std::int64_t score = 0;
    for (std::size_t r = 0; r < query.size(); ++r) score += query[r] * keys[j][r];
    if (j == 0 || score >= largest) {
      best = j;
      largest = score;
    }
  }
  return best;
}

void apply_layer(const HardLayer& layer, std::vector<Stream>& positions) {
  std::vector<Stream> sums = positions;
  for (const HardHead& head : layer.heads) {
    std::vector<Stream> keys;
    for (const Stream& x : positions) keys.push_back(multiply(head.key, x));
    for (std::size_t i = 1; i < positions.size(); ++i) {
      const std::size_t j = attended(multiply(head.query, positions[i]), keys, i);
      const Stream value = multiply(head.value, positions[j]);
      for (std::size_t c = 0; c < value.size(); ++c) sums[i][c] += value[c];
    }
  }
  for (Stream& x : sums) {
    Stream hidden = multiply(layer.up, x);
    for (std::size_t u = 0; u < hidden.size(); ++u) {
      hidden[u] = std::max<std::int64_t>(hidden[u] + layer.bias[u], 0);
    }
    const Stream out = multiply(layer.down, hidden);
    for (std::size_t c = 0; c < out.size(); ++c) x[c] += out[c];
  }
  positions = std::move(sums);
}

std::size_t nonzero(const IntegerMatrix& matrix) {
  return static_cast<std::size_t>(std::count_if(matrix.values.begin(), matrix.values.end(),
                                                [](std::int32_t value) { return value != 0; }));
}

}  // namespace

std::int64_t HardNetwork::run(std::string_view word) const {
  std::vector<Stream> positions;
  const auto embed = [&](std::size_t row) {
    Stream x(width());
    for (std::size_t c = 0; c < x.size(); ++c) x[c] = embedding.at(row, c);
    positions.push_back(std::move(x));
  };
  for (const char c : word) {
    const std::size_t letter = alphabet.find(c);
    if (letter == std::string::npos) throw InternalError("a word outside the alphabet");
    embed(letter);
  }
  embed(alphabet.size());
  for (const HardLayer& layer : layers) apply_layer(layer, positions);
  return positions.back()[answer];
}

std::size_t HardNetwork::weights() const {
  std::size_t count = nonzero(embedding);
  for (const HardLayer& layer : layers) {
    for (const HardHead& head : layer.heads) {
      count += nonzero(head.query) + nonzero(head.key) + nonzero(head.value);
    }
    count += nonzero(layer.up) + nonzero(layer.down);
    count += static_cast<std::size_t>(
        std::count_if(layer.bias.begin(), layer.bias.end(), [](auto value) { return value != 0; }));
  }
  return count;
}

HardNetwork compile_program(const BraspProgram& program) {
  return Compiler(program).run();
}

}  // namespace fathom::lab
