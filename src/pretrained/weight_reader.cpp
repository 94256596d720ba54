#include "pretrained/weight_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/counts.h"
#include "core/error.h"

namespace fathom::pretrained {
namespace {

/// Rows [h][q, k, v][K] of GPT-NeoX as all queries, all keys, all values.
template <class T>
void gather_heads(std::vector<T>& rows, std::size_t heads, std::size_t row_size) {
  const std::vector<T> source = rows;
  for (std::size_t part = 0; part < 3; ++part) {
    for (std::size_t head = 0; head < heads; ++head) {
      std::copy_n(source.begin() + static_cast<std::ptrdiff_t>((head * 3 + part) * row_size),
                  row_size,
                  rows.begin() + static_cast<std::ptrdiff_t>((part * heads + head) * row_size));
    }
  }
}

void append(Matrix& matrix, const Matrix& rows) {
  matrix.rows += rows.rows;
  matrix.cols = rows.cols;
  matrix.values.insert(matrix.values.end(), rows.values.begin(), rows.values.end());
}

/// Stored alongside the weights, recomputed here.
bool is_buffer(const std::string& name) {
  for (const char* ending :
       {".attn.bias", ".attn.masked_bias", ".attention.bias", ".attention.masked_bias", "inv_freq",
        "position_ids", "token_type_ids"}) {
    if (name.ends_with(ending)) return true;
  }
  return false;
}

std::string with_index(std::string_view pattern, std::int64_t index) {
  const std::size_t at = pattern.find("{}");
  return fmt::format("{}{}{}", pattern.substr(0, at), index, pattern.substr(at + 2));
}

}  // namespace

WeightReader::WeightReader(const Checkpoint& checkpoint, const Family& family, const Layout& layout)
    : checkpoint_(checkpoint), tensors_(*checkpoint.tensors), family_(family), layout_(layout) {
  for (const std::string_view prefix : family.names.prefixes) {
    prefix_ = prefix;
    if (has(prefix_ + std::string(family.names.tokens) + ".weight")) break;
  }
  if (checkpoint.gains_are_whole) layout_.gain_plus_one = false;
  if (!family.names.final_norm.empty() && layout_.block == Block::post) layout_.final_norm = false;
  const bool has_masked_head =
      layout_.head == HeadKind::masked && has(std::string(family.names.masked_dense) + ".weight");
  if (layout_.head == HeadKind::masked && !has_masked_head) layout_.head = HeadKind::none;
}

bool WeightReader::has(const std::string& name) const {
  return tensors_.find(name) != nullptr;
}

std::string WeightReader::layer_name(std::int64_t index, std::string_view part) const {
  return prefix_ + with_index(family_.names.layer, index) + std::string(part);
}

std::vector<float> WeightReader::read_checked(const std::string& name,
                                              const TensorShape& expected) {
  const TensorShape* shape = tensors_.find(name);
  if (shape == nullptr) throw DataError(fmt::format("{}: lacks {}", checkpoint_.origin, name));
  if (*shape != expected) {
    throw DataError(fmt::format("{}: {} has shape [{}], the config asks for [{}]",
                                checkpoint_.origin, name, fmt::join(*shape, ", "),
                                fmt::join(expected, ", ")));
  }
  std::size_t count = 1;
  for (const std::uint64_t size : expected) count *= size;
  std::vector<float> values(count);
  tensors_.read(name, values);
  for (const float value : values) {
    if (!std::isfinite(value)) {
      throw DataError(
          fmt::format("{}: {} holds a number that is not finite", checkpoint_.origin, name));
    }
  }
  return values;
}

Vector WeightReader::read_vector(const std::string& name, std::int64_t size) {
  return read_checked(name, {as_size(size)});
}

Vector WeightReader::read_bias(const std::string& name, std::int64_t size) {
  return has(name + ".bias") ? read_vector(name + ".bias", size) : Vector{};
}

Matrix WeightReader::read_matrix(const std::string& name, std::int64_t rows, std::int64_t cols,
                                 bool transposed) {
  Matrix matrix{rows, cols, {}};
  const std::string full = name + ".weight";
  if (!transposed) {
    matrix.values = read_checked(full, {as_size(rows), as_size(cols)});
    return matrix;
  }
  const std::vector<float> read = read_checked(full, {as_size(cols), as_size(rows)});
  matrix.values.resize(read.size());
  for (std::size_t r = 0; r < as_size(rows); ++r) {
    for (std::size_t c = 0; c < as_size(cols); ++c) {
      matrix.values[r * as_size(cols) + c] = read[c * as_size(rows) + r];
    }
  }
  return matrix;
}

NormWeights WeightReader::read_norm(const std::string& name, std::int64_t size) {
  NormWeights norm;
  // Old BERT files call gain and bias gamma and beta.
  const bool old = has(name + ".gamma");
  norm.gain = read_vector(name + (old ? ".gamma" : ".weight"), size);
  if (layout_.gain_plus_one) {
    for (float& gain : norm.gain) gain += 1;
  }
  const std::string bias = name + (old ? ".beta" : ".bias");
  if (layout_.norm == NormKind::layer && has(bias)) norm.bias = read_vector(bias, size);
  return norm;
}

NormWeights WeightReader::layer_norm(std::int64_t index, std::string_view part, std::int64_t size) {
  return part.empty() ? NormWeights{} : read_norm(layer_name(index, part), size);
}

void WeightReader::read_qkv(std::int64_t index, LayerWeights& layer) {
  const TensorNames& names = family_.names;
  const std::int64_t D = layout_.width, K = layout_.head_size;
  const std::int64_t queries = layout_.heads * K, keys = layout_.key_heads * K;
  if (family_.qkv != QkvForm::separate) {
    const std::string name = layer_name(index, names.qkv);
    layer.qkv = read_matrix(name, layout_.qkv_rows(), D, family_.transposed);
    layer.qkv_bias = read_bias(name, layout_.qkv_rows());
    if (family_.qkv == QkvForm::per_head) {
      gather_heads(layer.qkv.values, as_size(layout_.heads), as_size(K * D));
      if (!layer.qkv_bias.empty()) gather_heads(layer.qkv_bias, as_size(layout_.heads), as_size(K));
    }
    return;
  }
  struct Part {
    std::string_view name;
    std::int64_t rows;
  };
  const bool biased = has(layer_name(index, names.q) + ".bias");
  for (const Part& part : {Part{names.q, queries}, Part{names.k, keys}, Part{names.v, keys}}) {
    const std::string name = layer_name(index, part.name);
    append(layer.qkv, read_matrix(name, part.rows, D));
    if (!biased) continue;
    const Vector bias = read_vector(name + ".bias", part.rows);
    layer.qkv_bias.insert(layer.qkv_bias.end(), bias.begin(), bias.end());
  }
}

void WeightReader::read_ffn(std::int64_t index, LayerWeights& layer) {
  const TensorNames& names = family_.names;
  const std::int64_t D = layout_.width, F = layout_.ffn;
  const bool fused = layout_.gated && !names.gate_up.empty();
  if (layout_.gated && !fused) {
    for (const std::string_view part : {names.gate, names.up}) {
      append(layer.up, read_matrix(layer_name(index, part), F, D));
      const Vector bias = read_bias(layer_name(index, part), F);
      layer.up_bias.insert(layer.up_bias.end(), bias.begin(), bias.end());
    }
  } else {
    const std::string name = layer_name(index, fused ? names.gate_up : names.up);
    const std::int64_t rows = layout_.gated ? 2 * F : F;
    layer.up = read_matrix(name, rows, D, family_.transposed);
    layer.up_bias = read_bias(name, rows);
  }
  layer.down = read_matrix(layer_name(index, names.down), D, F, family_.transposed);
  layer.down_bias = read_bias(layer_name(index, names.down), D);
}

LayerWeights WeightReader::read_layer(std::int64_t index) {
  const TensorNames& names = family_.names;
  const std::int64_t D = layout_.width, K = layout_.head_size;
  LayerWeights layer;
  read_qkv(index, layer);
  const std::string out = layer_name(index, names.out);
  layer.out = read_matrix(out, D, layout_.heads * K, family_.transposed);
  layer.out_bias = read_bias(out, D);
  read_ffn(index, layer);
  layer.attention_in = layer_norm(index, names.attention_in, D);
  layer.attention_out = layer_norm(index, names.attention_out, D);
  layer.ffn_in = layer_norm(index, names.ffn_in, D);
  layer.ffn_out = layer_norm(index, names.ffn_out, D);
  if (layout_.block == Block::post && !layer.attention_out.exists()) {
    // OPT-350m and Fathom's own post-norm runs: the norms of the branches come after the sums.
    std::swap(layer.attention_out, layer.attention_in);
    std::swap(layer.ffn_out, layer.ffn_in);
  }
  if (layout_.qk_norm != QkNorm::none) {
    const bool whole = layout_.qk_norm == QkNorm::whole;
    layer.q_norm = layer_norm(index, names.q_norm, whole ? layout_.heads * K : K);
    layer.k_norm = layer_norm(index, names.k_norm, whole ? layout_.key_heads * K : K);
  }
  Hasher hasher;
  for (const std::vector<float>* part :
       {&layer.qkv.values, &layer.out.values, &layer.up.values, &layer.down.values, &layer.qkv_bias,
        &layer.out_bias, &layer.up_bias, &layer.down_bias, &layer.attention_in.gain,
        &layer.ffn_in.gain, &layer.attention_out.gain, &layer.ffn_out.gain}) {
    hasher.add(part->data(), part->size() * sizeof(float));
  }
  layer.hash = hasher.value();
  return layer;
}

void WeightReader::read_head(EndWeights& ends) {
  const TensorNames& names = family_.names;
  const std::string head(names.head);
  if (layout_.head == HeadKind::masked) {
    ends.masked_dense = read_matrix(std::string(names.masked_dense), layout_.width, layout_.width);
    ends.masked_dense_bias = read_bias(std::string(names.masked_dense), layout_.width);
    ends.masked_norm = read_norm(std::string(names.masked_norm), layout_.width);
    if (has(std::string(names.masked_bias))) {
      ends.head_bias = read_vector(std::string(names.masked_bias), layout_.vocab);
    }
  }
  const bool present = has(head + ".weight") && layout_.head != HeadKind::none;
  if (!layout_.tied && !present && layout_.head == HeadKind::plain) layout_.tied = true;
  if (!layout_.tied && present) {
    ends.head = read_matrix(head, layout_.vocab, layout_.embedding_width);
  }
  if (ends.head_bias.empty()) ends.head_bias = read_bias(head, layout_.vocab);
}

EndWeights WeightReader::read_ends() {
  const TensorNames& names = family_.names;
  const std::int64_t D = layout_.width, E = layout_.embedding_width;
  EndWeights ends;
  const auto named = [&](std::string_view part) { return prefix_ + std::string(part); };
  ends.tokens = read_matrix(named(names.tokens), layout_.vocab, E);
  if (layout_.learned_positions) {
    const TensorShape* shape = tensors_.find(named(names.positions) + ".weight");
    if (shape == nullptr || shape->size() != 2) {
      throw DataError(
          fmt::format("{}: lacks {}.weight", checkpoint_.origin, named(names.positions)));
    }
    ends.positions = read_matrix(named(names.positions), as_signed(shape->front()), D);
    layout_.context = std::min(layout_.context, ends.positions.rows - layout_.position_offset);
    if (layout_.context < 1) {
      throw DataError(
          fmt::format("{}: {} has too few rows", checkpoint_.origin, named(names.positions)));
    }
  }
  if (layout_.token_types) {
    const TensorShape* shape = tensors_.find(named(names.token_types) + ".weight");
    if (shape != nullptr && !shape->empty()) {
      ends.token_types = read_matrix(named(names.token_types), as_signed(shape->front()), D);
    }
  }
  if (E != D) {
    ends.project_in = read_matrix(named(names.project_in), D, E);
    ends.project_out = read_matrix(named(names.project_out), E, D);
  }
  if (layout_.embedding_norm) ends.embedding_norm = read_norm(named(names.embedding_norm), D);
  if (layout_.final_norm) ends.final_norm = read_norm(named(names.final_norm), D);
  read_head(ends);
  return ends;
}

void WeightReader::check_all_known() const {
  const TensorNames& n = family_.names;
  std::set<std::string> known;
  const auto add = [&](const std::string& stem) {
    for (const char* ending : {".weight", ".bias", ".gamma", ".beta"}) known.insert(stem + ending);
  };
  for (const std::string_view part : {n.tokens, n.positions, n.token_types, n.embedding_norm,
                                      n.project_in, n.project_out, n.final_norm}) {
    if (!part.empty()) add(prefix_ + std::string(part));
  }
  for (const std::string_view part : {n.head, n.masked_dense, n.masked_norm}) {
    if (!part.empty()) add(std::string(part));
  }
  known.insert(std::string(n.masked_bias));
  for (std::int64_t l = 0; l < layout_.depth(); ++l) {
    for (const std::string_view part :
         {n.qkv, n.q, n.k, n.v, n.out, n.q_norm, n.k_norm, n.gate, n.up, n.down, n.gate_up,
          n.attention_in, n.attention_out, n.ffn_in, n.ffn_out}) {
      if (!part.empty()) add(layer_name(l, part));
    }
  }
  for (const std::string& name : tensors_.names()) {
    // An encoder's pooler and next-sentence head take no part in what is measured here.
    const bool pooler = !layout_.causal && (name.find("pooler.") != name.npos ||
                                            name.starts_with("cls.seq_relationship."));
    if (known.contains(name) || is_buffer(name) || pooler) continue;
    // The other towers of multimodal models.
    if (prefix_.find("language_model") != prefix_.npos && !name.starts_with(prefix_)) continue;
    throw DataError(
        fmt::format("{}: {} has no place in a {} model; the file is of another kind, "
                    "or has a part that Fathom does not know",
                    checkpoint_.origin, name, layout_.family));
  }
}

}  // namespace fathom::pretrained
