#include "lab/hops/hop_network.h"

#include <bit>

#include "core/error.h"

namespace fathom::lab {
namespace {

/// Where things lie in the stream.
struct Layout {
  std::size_t alphabet;

  std::size_t one = 0;
  std::size_t place = 1;    // j
  std::size_t square = 2;   // j^2
  std::size_t after = 3;    // j + 1, 0 for the null token
  std::size_t recency = 4;  // j, M for the null token
  std::size_t pointer = 5;
  std::size_t read_pointer = 6;
  std::size_t character = 7;  // one-hot

  std::size_t answer() const { return character + alphabet; }
  std::size_t read_answer() const { return answer() + alphabet; }
  std::size_t width() const { return read_answer() + alphabet; }
};

/// What both kinds of layer share: values go to the two read slots, and the update moves the
/// pointer to its place and empties the slots.
HopLayer empty_layer(const Layout& at, std::size_t rank) {
  const std::size_t values = 1 + at.alphabet;
  HopLayer layer{WholeMatrix(rank, at.width()), WholeMatrix(rank, at.width()),
                 WholeMatrix(values, at.width()), WholeMatrix(at.width(), values),
                 WholeMatrix(at.width(), at.width())};
  layer.write.at(at.read_pointer, 0) = 1;
  for (std::size_t c = 0; c < at.alphabet; ++c) layer.write.at(at.read_answer() + c, 1 + c) = 1;
  layer.update.at(at.pointer, at.pointer) = -1;
  layer.update.at(at.pointer, at.read_pointer) = 1;
  layer.update.at(at.read_pointer, at.read_pointer) = -1;
  for (std::size_t c = 0; c < at.alphabet; ++c) {
    layer.update.at(at.read_answer() + c, at.read_answer() + c) = -1;
  }
  return layer;
}

HopLayer first_layer(const Layout& at, std::int64_t above_length) {
  HopLayer layer = empty_layer(at, 1 + at.alphabet);
  layer.query.at(0, at.one) = 1;
  layer.key.at(0, at.recency) = 1;
  for (std::size_t c = 0; c < at.alphabet; ++c) {
    layer.query.at(1 + c, at.character + c) = 2 * above_length;
    layer.key.at(1 + c, at.character + c) = 1;
  }
  layer.read.at(0, at.after) = 1;
  return layer;
}

HopLayer jump_layer(const Layout& at, bool take_answer) {
  HopLayer layer = empty_layer(at, 2);
  layer.query.at(0, at.pointer) = 2;
  layer.key.at(0, at.place) = 1;
  layer.query.at(1, at.one) = -1;
  layer.key.at(1, at.square) = 1;
  layer.read.at(0, at.pointer) = 1;
  for (std::size_t c = 0; c < at.alphabet; ++c) {
    layer.read.at(1 + c, at.answer() + c) = 1;
    if (!take_answer) continue;
    layer.update.at(at.answer() + c, at.answer() + c) = -1;
    layer.update.at(at.answer() + c, at.read_answer() + c) = 1;
  }
  return layer;
}

/// Rows of x through a matrix, skipping its zeros.
WholeMatrix through(const WholeMatrix& matrix, const WholeMatrix& x) {
  WholeMatrix y(x.rows, matrix.rows);
  for (std::size_t a = 0; a < matrix.rows; ++a) {
    for (std::size_t b = 0; b < matrix.columns; ++b) {
      const std::int64_t weight = matrix.at(a, b);
      if (weight == 0) continue;
      for (std::size_t i = 0; i < x.rows; ++i) y.at(i, a) += weight * x.at(i, b);
    }
  }
  return y;
}

/// The key j < i with the largest score; there is only one.
std::size_t attended(const WholeMatrix& queries, const WholeMatrix& keys, std::size_t i) {
  std::size_t best = 0;
  std::int64_t largest = std::numeric_limits<std::int64_t>::min();
  for (std::size_t j = 0; j < i; ++j) {
    std::int64_t score = 0;
    for (std::size_t r = 0; r < queries.columns; ++r) score += queries.at(i, r) * keys.at(j, r);
    if (score > largest) {
      best = j;
      largest = score;
    }
  }
  return best;
}

void apply_layer(const HopLayer& layer, WholeMatrix& x) {
  const WholeMatrix queries = through(layer.query, x);
  const WholeMatrix keys = through(layer.key, x);
  const WholeMatrix values = through(layer.read, x);
  WholeMatrix gathered(x.rows, values.columns);
  for (std::size_t i = 1; i < x.rows; ++i) {
    const std::size_t j = attended(queries, keys, i);
    for (std::size_t v = 0; v < values.columns; ++v) gathered.at(i, v) = values.at(j, v);
  }
  add_to(x, through(layer.write, gathered));
  add_to(x, through(layer.update, x));
}

}  // namespace

std::size_t hop_depth(std::size_t hops) {
  return static_cast<std::size_t>(std::bit_width(hops)) + 1;
}

HopNetwork build_hop_network(std::size_t hops, std::size_t layers, std::size_t length,
                             std::size_t alphabet) {
  if (hops < 1 || layers < 1) throw InternalError("a hop network needs a hop and a layer");
  const Layout at{alphabet};
  HopNetwork network;
  network.length = length;
  network.alphabet = alphabet;
  network.answer = at.answer();
  network.one = at.one;
  network.tokens = WholeMatrix(alphabet + 1, at.width());
  for (std::size_t c = 0; c < alphabet; ++c) {
    network.tokens.at(1 + c, at.character + c) = 1;
    network.tokens.at(1 + c, at.answer() + c) = 1;
  }
  const auto above_length = static_cast<std::int64_t>(length) + 1;
  network.positions = WholeMatrix(length + 1, at.width());
  for (std::size_t j = 0; j <= length; ++j) {
    const auto place = static_cast<std::int64_t>(j);
    network.positions.at(j, at.one) = 1;
    network.positions.at(j, at.place) = place;
    network.positions.at(j, at.square) = place * place;
    network.positions.at(j, at.after) = j == 0 ? 0 : place + 1;
    network.positions.at(j, at.recency) = j == 0 ? above_length : place;
  }
  network.layers.push_back(first_layer(at, above_length));
  for (std::size_t l = 2; l <= layers; ++l) {
    network.layers.push_back(jump_layer(at, (hops >> (l - 2) & 1) != 0));
  }
  return network;
}

std::vector<int> run_hard(const HopNetwork& network, const Characters& sequence) {
  WholeMatrix x(sequence.size() + 1, network.width());
  for (std::size_t i = 0; i < x.rows; ++i) {
    const std::size_t token = i == 0 ? 0 : 1 + sequence[i - 1];
    for (std::size_t c = 0; c < x.columns; ++c) {
      x.at(i, c) = network.tokens.at(token, c) + network.positions.at(i, c);
    }
  }
  for (const HopLayer& layer : network.layers) apply_layer(layer, x);
  std::vector<int> answers;
  for (std::size_t i = 1; i < x.rows; ++i) {
    int answer = kNoHop;
    for (std::size_t c = 0; c < network.alphabet; ++c) {
      if (x.at(i, network.answer + c) == 1) answer = static_cast<int>(c);
    }
    answers.push_back(answer);
  }
  return answers;
}

}  // namespace fathom::lab
