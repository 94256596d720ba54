// The units a model can lose without losing its form: neurons of feed-forwards and heads.
//
//   neuron j   reads: row j of `up` (and of its gate) with the bias, writes: column j of `down`
//   head g     reads: rows of queries, keys and values with the biases, writes: columns of `out`;
//              query heads that share a key head are one unit with it
//
// A neuron that reads nothing gives f(0) = 0, a head without values gives 0, and a unit that writes
// nothing changes nothing: such a unit is idle, and the model without it gives the same output.
#pragma once

#include <string>
#include <vector>

#include "model/hf_layout.h"
#include "model/model_spec.h"

namespace fathom::model {

enum class UnitKind : std::uint8_t { neuron, head };

/// Whole rows of a matrix, or some columns in all of its rows.
struct UnitBlock {
  std::string parameter;
  std::int64_t rows = 0, cols = 0;  // of the parameter
  bool is_rows = true;
  std::int64_t first = 0, count = 0;  // rows, or columns
};

struct Unit {
  UnitKind kind = UnitKind::neuron;
  std::size_t sublayer = 0;  // its place in the order of sublayers
  std::vector<UnitBlock> reads, writes;
};

/// All units, sublayer by sublayer.
std::vector<Unit> units_of(const ModelSpec& spec);

/// Whether a head can be removed without changing what the others do.
bool has_separate_heads(const ModelSpec& spec);

/// What is left of one sublayer.
struct UnitCount {
  UnitKind kind = UnitKind::neuron;
  std::size_t sublayer = 0;
  std::int64_t all = 0, idle = 0;
  bool gone() const { return idle == all; }
};

struct CompactedModel {
  ModelSpec spec;
  ParameterValues parameters;
  std::vector<UnitCount> counts;  // by sublayer
};

/// The model without its idle units. A sublayer that is gone keeps one of them for its bias, which
/// still counts; heads that are not separate stay. Where all layers keep the same number, `heads`
/// and `ffn` say so.
CompactedModel compact(const ModelSpec& spec, const ParameterValues& parameters);

}  // namespace fathom::model
