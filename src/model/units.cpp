#include "model/units.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "core/counts.h"

namespace fathom::model {
namespace {

/// The units of one sublayer.
class SublayerUnits {
 public:
  SublayerUnits(const ModelSpec& spec, std::string name, Unit blank, std::vector<Unit>& units)
      : spec_(spec), name_(std::move(name)), blank_(std::move(blank)), units_(units) {}

  void add_neurons(std::int64_t count) {
    const bool gated = spec_.activation == FeedForward::swiglu;
    for (std::int64_t j = 0; j < count; ++j) {
      Unit unit = blank_;
      read_rows(unit, ".up", gated ? 2 * count : count, j, 1);
      if (gated) read_rows(unit, ".up", 2 * count, count + j, 1);
      unit.writes = {{name_ + ".down.weight", spec_.layer_width(), count, false, j, 1}};
      units_.push_back(std::move(unit));
    }
  }

  void add_heads(std::int64_t heads) {
    const std::int64_t size = spec_.resolved_head_size();
    const std::int64_t shared = spec_.heads / spec_.resolved_key_heads();  // by one key head
    const std::int64_t groups = heads / shared;
    const std::int64_t rows = (heads + 2 * groups) * size;
    for (std::int64_t g = 0; g < groups; ++g) {
      Unit unit = blank_;
      read_rows(unit, ".qkv", rows, g * shared * size, shared * size);
      read_rows(unit, ".qkv", rows, (heads + g) * size, size);
      read_rows(unit, ".qkv", rows, (heads + groups + g) * size, size);
      unit.writes = {{name_ + ".out.weight", spec_.layer_width(), heads * size, false,
                      g * shared * size, shared * size}};
      units_.push_back(std::move(unit));
    }
  }

 private:
  /// Rows of a linear layer's weight, and of its bias where it has one.
  void read_rows(Unit& unit, const std::string& layer, std::int64_t rows, std::int64_t first,
                 std::int64_t count) const {
    unit.reads.push_back(
        {name_ + layer + ".weight", rows, spec_.layer_width(), true, first, count});
    if (spec_.biases) unit.reads.push_back({name_ + layer + ".bias", 1, rows, false, first, count});
  }

  const ModelSpec& spec_;
  std::string name_;
  Unit blank_;
  std::vector<Unit>& units_;
};

bool all_zero(const std::vector<UnitBlock>& blocks, const ParameterValues& parameters) {
  return std::all_of(blocks.begin(), blocks.end(), [&](const UnitBlock& block) {
    const auto values = parameters.at(block.parameter).begin();
    const std::int64_t rows = block.is_rows ? block.count : block.rows;
    const std::int64_t cols = block.is_rows ? block.cols : block.count;
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto first =
          values + (block.is_rows ? (block.first + r) * block.cols : r * block.cols + block.first);
      if (std::any_of(first, first + cols, [](float value) { return value != 0; })) return false;
    }
    return true;
  });
}

/// Which rows and columns of a parameter stay.
struct Kept {
  std::vector<bool> rows, cols;

  void drop(const UnitBlock& block) {
    if (rows.empty()) {
      rows.assign(as_size(block.rows), true);
      cols.assign(as_size(block.cols), true);
    }
    std::vector<bool>& list = block.is_rows ? rows : cols;
    std::fill_n(list.begin() + block.first, block.count, false);
  }

  std::vector<float> of(const std::vector<float>& values) const {
    std::vector<float> left;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      for (std::size_t c = 0; c < cols.size(); ++c) {
        if (rows[r] && cols[c]) left.push_back(values[r * cols.size() + c]);
      }
    }
    return left;
  }
};

/// Units of one sublayer are contiguous; the first unit of a sublayer that is gone stays.
std::vector<UnitCount> drop_idle(const ModelSpec& spec, const ParameterValues& parameters,
                                 std::map<std::string, Kept>& kept) {
  const std::vector<Unit> units = units_of(spec);
  const auto is_idle = [&](const Unit& unit) {
    if (unit.kind == UnitKind::head && !has_separate_heads(spec)) return false;
    return all_zero(unit.reads, parameters) || all_zero(unit.writes, parameters);
  };
  std::vector<UnitCount> counts;
  for (const Unit& unit : units) {
    if (counts.empty() || counts.back().sublayer != unit.sublayer) {
      counts.push_back({unit.kind, unit.sublayer, 0, 0});
    }
    ++counts.back().all;
    if (is_idle(unit)) ++counts.back().idle;
  }
  auto count = counts.begin();
  bool spared = false;
  for (const Unit& unit : units) {
    if (count->sublayer != unit.sublayer) {
      ++count;
      spared = false;
    }
    if (!is_idle(unit)) continue;
    if (count->gone() && !std::exchange(spared, true)) continue;
    for (const UnitBlock& block : unit.reads) kept[block.parameter].drop(block);
    for (const UnitBlock& block : unit.writes) kept[block.parameter].drop(block);
  }
  return counts;
}

bool are_equal(const std::vector<std::int64_t>& values) {
  return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
}

/// Widths and heads of what is left.
ModelSpec compacted_spec(ModelSpec spec, const std::vector<UnitCount>& counts) {
  const std::int64_t shared = spec.heads / spec.resolved_key_heads();
  const std::int64_t size = spec.resolved_head_size();
  std::vector<std::int64_t> heads;
  std::vector<std::int64_t> neurons;
  for (const UnitCount& count : counts) {
    const std::int64_t left = std::max<std::int64_t>(1, count.all - count.idle);
    if (count.kind == UnitKind::head) heads.push_back(left * shared);
    if (count.kind == UnitKind::neuron) neurons.push_back(left);
  }
  spec.layer_heads = spec.layer_ffn = {};
  if (!are_equal(heads)) {
    spec.layer_heads = heads;
  } else if (!heads.empty() && heads.front() != spec.heads) {
    spec.head_size = size;
    spec.heads = heads.front();
    if (spec.key_heads != 0) spec.key_heads = spec.heads / shared;
  }
  if (!are_equal(neurons)) {
    spec.layer_ffn = neurons;
  } else if (!neurons.empty() && neurons.front() != spec.resolved_ffn()) {
    spec.ffn = neurons.front();
  }
  return spec;
}

}  // namespace

std::vector<Unit> units_of(const ModelSpec& spec) {
  std::vector<Unit> units;
  const std::string order = spec.sublayers();
  std::size_t attentions = 0;
  std::size_t feed_forwards = 0;
  for (std::size_t k = 0; k < order.size(); ++k) {
    const std::string name = sublayer_name(k, order[k] == 's');
    if (order[k] == 's') {
      SublayerUnits(spec, name, {UnitKind::head, k, {}, {}}, units)
          .add_heads(spec.heads_of(attentions++));
    } else {
      SublayerUnits(spec, name, {UnitKind::neuron, k, {}, {}}, units)
          .add_neurons(spec.ffn_of(feed_forwards++));
    }
  }
  return units;
}

bool has_separate_heads(const ModelSpec& spec) {
  return !spec.attention_norm && spec.keys == KeySource::tokens;
}

CompactedModel compact(const ModelSpec& spec, const ParameterValues& parameters) {
  std::map<std::string, Kept> kept;
  CompactedModel compacted;
  compacted.counts = drop_idle(spec, parameters, kept);
  compacted.spec = compacted_spec(spec, compacted.counts);
  compacted.parameters = parameters;
  for (const auto& [name, rows_and_columns] : kept) {
    compacted.parameters[name] = rows_and_columns.of(parameters.at(name));
  }
  return compacted;
}

}  // namespace fathom::model
