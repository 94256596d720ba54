#include "model/transformer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/counts.h"
#include "core/error.h"
#include "model/units.h"

namespace fathom::model {
namespace {

using namespace engine;

ActivationKind activation_kind(FeedForward kind) {
  switch (kind) {
    case FeedForward::relu:
      return ActivationKind::relu;
    case FeedForward::gelu:
      return ActivationKind::gelu;
    case FeedForward::gelu_tanh:
      return ActivationKind::gelu_tanh;
    case FeedForward::swiglu:
      return ActivationKind::swiglu;
    case FeedForward::identity:
      break;
  }
  throw InternalError("the identity is not an activation");
}

/// Appends the ops of one model in reading order.
class Builder {
 public:
  explicit Builder(Transformer& model) : model_(model), spec_(model.spec), plan_(model.plan) {
    compute_ = model.options.precision == Precision::bf16 ? DType::bf16 : DType::f32;
    // The pre-norm stream stays in f32: a deep model adds many small branches to it, and bf16
    // would round most of each away. A normalised (post-norm) stream has no such sum.
    stream_ = spec_.norm == NormPlace::pre ? DType::f32 : compute_;
    keeps_slopes_ = model.options.target.offers.byte_slopes && compute_ == DType::bf16;
    rows_ = model.rows();
  }

  void build() {
    model_.tokens = plan_.input("tokens", DType::i32, rows_, 1);
    embed();
    const std::string sublayers = spec_.sublayers();
    for (std::size_t k = 0; k < sublayers.size(); ++k) sublayer(k, sublayers[k] == 's');
    head();
  }

 private:
  // ---- parameters

  TensorId add_parameter(const std::string& name, std::int64_t rows, std::int64_t cols, Role role,
                         double initial = 0) {
    const TensorId id = plan_.parameter(name, rows, cols);
    model_.parameters.push_back(
        {name, id, role, scaling_of(spec_, role, cols, rows), initial, -1, 0});
    return id;
  }

  TensorId linear(const std::string& name, TensorId x, std::int64_t outs, Role role, bool bias) {
    const std::int64_t ins = plan_.tensor(x).cols;
    const TensorId weight = add_parameter(name + ".weight", outs, ins, role);
    const TensorId b =
        bias ? add_parameter(name + ".bias", 1, outs, Role::hidden_bias) : TensorId{};
    const TensorId y = plan_.activation(name, compute_, rows_, outs);
    plan_.append(Linear{x, plan_.compute_copy(weight, compute_), b, y});
    return y;
  }

  // ---- parts of the model

  void embed() {
    const std::int64_t width = spec_.embedding_rank ? spec_.embedding_rank : spec_.width;
    table_ = add_parameter("tokens.weight", spec_.vocab, width, Role::token_table);
    const bool learned = spec_.positions == Positions::learned;
    const auto positions = [&] {
      return add_parameter("positions.weight", spec_.context, spec_.width, Role::position_table);
    };
    if (spec_.embedding_rank == 0) {
      x_ = plan_.activation("embedding", stream_, rows_, width);
      plan_.append(Embed{model_.tokens, table_, learned ? positions() : TensorId{}, x_, 1});
    } else {
      const TensorId narrow = plan_.activation("narrow embedding", compute_, rows_, width);
      plan_.append(Embed{model_.tokens, table_, {}, narrow, 1});
      const TensorId up = add_parameter("tokens.up", spec_.width, width, Role::hidden_weight);
      const TensorId wide = plan_.activation("wide embedding", compute_, rows_, spec_.width);
      plan_.append(Linear{narrow, plan_.compute_copy(up, compute_), {}, wide});
      x_ = wide;
      if (learned || stream_ != compute_) {
        x_ = plan_.activation("embedding", stream_, rows_, spec_.width);
        if (learned) {
          plan_.append(AddPositions{wide, positions(), x_});
        } else {
          plan_.append(Residual{wide, wide, x_, 0.5f, 0.5f});  // wide itself, in the stream's type
        }
      }
    }
    x_ = dropped(x_);
    remember(x_);
  }

  TensorId dropped(TensorId x) {
    if (spec_.dropout == 0) return x;
    const Tensor tensor = plan_.tensor(x);
    const TensorId y = plan_.activation(tensor.name + " dropped", tensor.dtype, rows_, tensor.cols);
    plan_.append(Dropout{
        x, y, {static_cast<float>(spec_.dropout), model_.options.dropout_seed, dropout_stream_++}});
    return y;
  }

  void remember(TensorId stream) {
    model_.streams.push_back(stream);
    if (model_.options.keep_activations) plan_.keep(stream);
  }

  /// r = stream x + branch, y = norm(r); returns y and moves x to r (pre-norm) or y (post-norm).
  TensorId normalise(const std::string& name, Role role) {
    const std::int64_t width = plan_.tensor(x_).cols;
    const TensorId gain = add_parameter(name + ".gain", 1, width, role, 1);
    const TensorId bias = spec_.norm_kind == NormKind::layer
                              ? add_parameter(name + ".bias", 1, width, role)
                              : TensorId{};
    const DType type = plan_.tensor(x_).dtype;
    const TensorId r =
        branch_.exists() ? plan_.activation(name + " sum", type, rows_, width) : TensorId{};
    const TensorId y = plan_.activation(name, compute_, rows_, width);
    const TensorId stats = plan_.activation(name + " statistics", DType::f32, rows_, 2);
    plan_.append(
        engine::Norm{x_, branch_, gain, bias, r, y, stats, spec_.norm_kind,
                     static_cast<float>(spec_.norm_epsilon),
                     branch_.exists() ? static_cast<float>(stream_multiplier(spec_)) : 1.0f,
                     static_cast<float>(branch_multiplier(spec_))});
    if (r.exists()) x_ = r;
    branch_ = {};
    return y;
  }

  void sublayer(std::size_t index, bool attention) {
    const std::string name = sublayer_name(index, attention);
    if (spec_.slice > 0) return sliced_sublayer(name, index, attention);
    TensorId input = x_;
    if (spec_.norm == NormPlace::pre) {
      const bool sums = branch_.exists();
      input = normalise(name + ".norm", Role::block_norm);
      if (sums) remember(x_);
    }
    const TensorId y = dropped(attention ? attend(name, index, input) : feed_forward(name, input));
    if (!spec_.residual) {
      x_ = y;
      if (spec_.norm == NormPlace::post) x_ = normalise(name + ".norm", Role::block_norm);
      remember(x_);
      return;
    }
    branch_ = y;
    if (spec_.norm == NormPlace::pre) return;  // summed by the next norm
    if (spec_.norm == NormPlace::post) {
      x_ = normalise(name + ".norm", Role::block_norm);
    } else {
      const TensorId r = plan_.activation(name + " sum", stream_, rows_, spec_.width);
      plan_.append(Residual{x_, branch_, r, 1, static_cast<float>(branch_multiplier(spec_))});
      x_ = r;
      branch_ = {};
    }
    remember(x_);
  }

  /// Reads and writes `slice` columns of the stream, which move on by half of that from layer to
  /// layer, so that neighbours overlap.
  void sliced_sublayer(const std::string& name, std::size_t index, bool attention) {
    if (attention && index > 0) first_column_ = (first_column_ + spec_.slice / 2) % spec_.width;
    const TensorId part = plan_.activation(name + ".slice", stream_, rows_, spec_.slice);
    plan_.append(Slice{x_, part, first_column_});
    const TensorId whole = std::exchange(x_, part);
    const TensorId input = normalise(name + ".norm", Role::block_norm);
    const TensorId branch =
        dropped(attention ? attend(name, index, input) : feed_forward(name, input));
    x_ = plan_.activation(name + " sum", stream_, rows_, spec_.width);
    plan_.append(AddSlice{whole, branch, x_, first_column_, 1});
    remember(x_);
  }

  AttentionShape attention_shape(std::size_t index, std::int64_t heads) const {
    AttentionShape shape;
    shape.batch = model_.options.batch;
    shape.context = spec_.context;
    shape.heads = heads;
    shape.key_heads = heads * spec_.resolved_key_heads() / spec_.heads;
    shape.head_size = spec_.resolved_head_size();
    shape.kind = spec_.attention;
    shape.mask = spec_.mask;
    shape.window = spec_.window;
    shape.scale = static_cast<float>(attention_scale(spec_));
    shape.rotary_base =
        spec_.positions == Positions::rotary ? static_cast<float>(spec_.rotary_base) : 0.0f;
    shape.stride = spec_.stride;
    shape.global_tokens = spec_.global_tokens;
    shape.random_blocks = spec_.random_blocks;
    shape.own_block = spec_.own_block || spec_.keys == KeySource::sorted;
    shape.block = spec_.resolved_block_size();
    if (spec_.keys == KeySource::projected) shape.key_limit = spec_.projected_length;
    shape.features = spec_.features;
    shape.seed = static_cast<std::uint32_t>(index);  // every layer draws its own
    return shape;
  }

  TensorId attend(const std::string& name, std::size_t index, TensorId x) {
    const AttentionShape shape = attention_shape(index, spec_.heads_of(attentions_++));
    const std::int64_t size = shape.head_size, groups = shape.key_heads;
    const TensorId qkv =
        linear(name + ".qkv", x, shape.qkv_cols(), Role::hidden_weight, spec_.biases);
    Parameter& weight = model_.parameters[model_.parameters.size() - (spec_.biases ? 2 : 1)];
    weight.value_row = (shape.heads + groups) * size;
    weight.value_init_std =
        scaling_of(spec_, Role::value_or_up, spec_.layer_width(), groups * size).init_std;
    const TensorId y = plan_.activation(name, compute_, rows_, shape.heads * size);
    const TensorId stats =
        plan_.activation(name + " statistics", DType::f32, shape.batch * shape.heads,
                         shape.context * shape.stats_of_row());
    const TensorId mapped = mapped_keys(name, shape, qkv);
    if (model_.options.keep_activations) plan_.keep(mapped);
    plan_.append(Attention{mapped, y, stats, shape});
    return linear(name + ".out", spec_.attention_norm ? normalise_heads(name, y) : y,
                  spec_.layer_width(), Role::branch_output, spec_.biases);
  }

  TensorId mapped_keys(const std::string& name, const AttentionShape& shape, TensorId qkv) {
    if (spec_.keys == KeySource::tokens) return qkv;
    KeyShape keys{shape.batch,
                  shape.context,
                  shape.heads,
                  shape.key_heads,
                  shape.head_size,
                  KeyMap::smear,
                  1};
    TensorId weight;
    if (spec_.keys == KeySource::smeared) {
      weight = add_parameter(name + ".smear", 1, shape.key_heads, Role::hidden_bias);
    } else if (spec_.keys == KeySource::projected) {
      keys.map = KeyMap::project;
      weight = add_parameter(name + ".length_projection", spec_.projected_length, spec_.context,
                             Role::hidden_weight);
      // A projected key is as large as a token's.
      model_.parameters.back().scaling.init_std = 1 / std::sqrt(as_double(spec_.context));
    } else if (spec_.keys == KeySource::sorted) {
      keys.map = KeyMap::sort;
      keys.block = shape.block;
      weight = add_parameter(name + ".block_keys", spec_.context / shape.block,
                             shape.key_heads * shape.head_size, Role::hidden_weight);
    } else {
      keys.map = KeyMap::synthesise;
      weight = add_parameter(name + ".position_keys", spec_.context,
                             shape.key_heads * shape.head_size, Role::hidden_weight);
    }
    const TensorId y = plan_.activation(name + ".mapped", compute_, rows_, shape.qkv_cols());
    plan_.append(MapKeys{qkv, weight, y, keys});
    return y;
  }

  TensorId normalise_heads(const std::string& name, TensorId x) {
    const std::int64_t width = plan_.tensor(x).cols;
    const TensorId gain = add_parameter(name + ".heads_norm.gain", 1, width, Role::block_norm, 1);
    const TensorId y = plan_.activation(name + ".heads_norm", compute_, rows_, width);
    const TensorId stats = plan_.activation(name + ".heads_norm statistics", DType::f32, rows_, 2);
    plan_.append(engine::Norm{.x = x,
                              .gain = gain,
                              .y = y,
                              .stats = stats,
                              .kind = NormKind::rms,
                              .epsilon = static_cast<float>(spec_.norm_epsilon)});
    return y;
  }

  TensorId feed_forward(const std::string& name, TensorId x) {
    const std::int64_t width = spec_.ffn_of(feed_forwards_++);
    const bool gated = spec_.activation == FeedForward::swiglu;
    TensorId u =
        linear(name + ".up", x, gated ? 2 * width : width, Role::value_or_up, spec_.biases);
    if (spec_.activation != FeedForward::identity) {
      const TensorId y = plan_.activation(name + " activation", compute_, rows_, width);
      const ActivationKind kind = activation_kind(spec_.activation);
      const TensorId slopes = keeps_slopes_ && !gated
                                  ? plan_.activation(name + " slopes", DType::u8, rows_, width)
                                  : TensorId{};
      plan_.append(Activation{u, y, kind, slopes});
      u = y;
    }
    return linear(name + ".down", u, spec_.layer_width(), Role::branch_output, spec_.biases);
  }

  void head() {
    TensorId x = x_;
    if (spec_.norm == NormPlace::pre) {
      const bool sums = branch_.exists();
      x = normalise("final_norm", Role::final_norm);
      if (sums) remember(x_);
    }
    // A low embedding rank applies at both ends: the head reads r numbers too.
    if (spec_.embedding_rank != 0) {
      x = linear("head.down", x, spec_.embedding_rank, Role::hidden_weight, false);
    }
    TensorId weight = table_;
    if (!spec_.tied) {
      weight = add_parameter("head.weight", spec_.vocab, plan_.tensor(x).cols, Role::head);
    }
    weight = plan_.compute_copy(weight, compute_);
    const auto scale = static_cast<float>(head_multiplier(spec_));
    if (model_.options.purpose == Purpose::logits) {
      model_.logits = plan_.output("logits", rows_, spec_.vocab);
      plan_.append(Logits{x, weight, {}, model_.logits, scale});
      return;
    }
    model_.targets = plan_.input("targets", DType::i32, rows_, 1);
    model_.losses = plan_.output("losses", rows_, 1);
    model_.loss = plan_.output("loss", 1, 1);
    plan_.append(HeadLoss{x, weight, {}, model_.targets, model_.losses, model_.loss, scale});
  }

  Transformer& model_;
  const ModelSpec& spec_;
  StepPlan& plan_;
  DType compute_, stream_;
  bool keeps_slopes_;  // of activations, in bytes, for the backward
  std::int64_t rows_;
  TensorId x_, branch_, table_;
  std::uint32_t dropout_stream_ = 0;
  std::int64_t first_column_ = 0;                   // of a layer's slice
  std::size_t attentions_ = 0, feed_forwards_ = 0;  // built so far
};

std::vector<AdamWGroup> adamw_groups(const Transformer& model) {
  const OptimiserSettings& settings = model.options.optimiser;
  std::vector<AdamWGroup> groups;
  for (const Parameter& parameter : model.parameters) {
    const Scaling& scaling = parameter.scaling;
    groups.push_back({parameter.id, static_cast<float>(scaling.lr_multiplier),
                      static_cast<float>(settings.weight_decay * scaling.decay_multiplier),
                      static_cast<float>(settings.epsilon * scaling.epsilon_multiplier)});
  }
  return groups;
}

/// Neurons by their input weights, heads by all of theirs (arXiv 1910.06717).
std::vector<ProxGroup> prox_groups(const Transformer& model) {
  const OptimiserSettings& settings = model.options.optimiser;
  std::map<std::string, TensorId> ids;
  for (const Parameter& parameter : model.parameters) ids[parameter.name] = parameter.id;
  std::vector<ProxGroup> groups;
  for (const Unit& unit : units_of(model.spec)) {
    const bool head = unit.kind == UnitKind::head;
    const double strength = head ? settings.prox_heads : settings.prox_rows;
    if (strength == 0) continue;
    ProxGroup group{{}, static_cast<float>(strength)};
    const auto add = [&](const UnitBlock& b) {
      group.blocks.push_back(b.is_rows
                                 ? ProxBlock{ids.at(b.parameter), b.first, b.count, 0, b.cols}
                                 : ProxBlock{ids.at(b.parameter), 0, b.rows, b.first, b.count});
    };
    std::for_each(unit.reads.begin(), unit.reads.end(), add);
    if (head) std::for_each(unit.writes.begin(), unit.writes.end(), add);
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace

std::int64_t Transformer::parameter_count() const {
  std::int64_t count = 0;
  for (const Parameter& parameter : parameters) count += plan.tensor(parameter.id).size();
  return count;
}

std::int64_t Transformer::non_embedding_count() const {
  std::int64_t count = 0;
  for (const Parameter& parameter : parameters) {
    const Role role = parameter.role;
    if (role == Role::token_table || role == Role::position_table || role == Role::head) continue;
    count += plan.tensor(parameter.id).size();
  }
  return count;
}

std::unique_ptr<const Transformer> build_transformer(const ModelSpec& spec,
                                                     const BuildOptions& options) {
  validate(spec);
  auto model = std::make_unique<Transformer>();
  model->spec = spec;
  model->options = options;
  if (options.target.offers.narrow_gradients && options.precision == Precision::bf16) {
    model->plan.narrow_gradients();
  }
  Builder(*model).build();
  if (options.purpose == Purpose::training) {
    model->plan.set_adamw(static_cast<float>(options.optimiser.beta1),
                          static_cast<float>(options.optimiser.beta2), adamw_groups(*model));
    if (options.optimiser.prox != ProxKind::none) {
      model->plan.set_prox(options.optimiser.prox, prox_groups(*model));
    }
  }
  model->plan.finish(options.target);
  return model;
}

}  // namespace fathom::model
