#include "planner/run_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/counts.h"
#include "core/error.h"
#include "core/text.h"
#include "core/units.h"

namespace fathom::planner {
namespace {

/// From this size on, recipes are for a GPU.
constexpr double kGpuSize = 20e6;
/// From the runs in which rate and initial scale were tried: examples/small.toml.
constexpr double kTriedBatchTokens = 8 * 256;
constexpr double kTriedTotalTokens = 1000 * kTriedBatchTokens;

/// Best depth, size, depths, sizes, tokens per parameter, batch, precision, device.
constexpr const char* kStudyTemplate =
    R"(# Depths around the {0:.0f} layers that the published laws give {1}.
title = "Depth and width up to {1}"
question = "From which size does a deeper transformer pay on this text?"

[corpus]
path = "sotu"  # your text: a file or a folder
tokenizer = "bpe"
vocab = 2000

[grid]
kind = "ladder"
depths = [{2}]
sizes = [{3}]
head_size = 16
tolerance = 0.25
min_width = 32

[budget]
tokens_per_parameter = {4:g}
warmup_share = 0.02

[model]
context = 256
activation = "gelu_tanh"
parametrisation = "completep"
base_width = 64
base_layers = 2
init_std = 0.08

[train]
batch = {5}
learning_rate = 0.006
schedule = "cosine"
precision = "{6}"

[run]
device = "{7}"
)";

class TomlLines {
 public:
  void add(const std::string& line, const std::string& note = "") {
    lines_.push_back(note.empty() ? line : fmt::format("{:<32}# {}", line, note));
  }
  std::string text() const { return join(lines_, "\n") + "\n"; }

 private:
  std::vector<std::string> lines_;
};

void add_model(TomlLines& toml, const Shape& shape) {
  toml.add("[model]");
  toml.add(fmt::format("layers = {}", shape.layers));
  toml.add(fmt::format("width = {}", shape.width));
  toml.add(fmt::format("heads = {}", shape.heads));
  if (shape.kv_heads != shape.heads) toml.add(fmt::format("key_heads = {}", shape.kv_heads));
  if (shape.attention_width() != shape.width) {
    toml.add(fmt::format("head_size = {}", shape.head_size));
  }
  toml.add(fmt::format("ffn = {}", shape.ffn));
  toml.add(fmt::format("vocab = {}", shape.vocab), "at least that of the tokens");
  toml.add(fmt::format("context = {}", shape.context));
  toml.add(fmt::format("tied = {}", shape.tied));
  toml.add(fmt::format("biases = {}", !shape.gated()));
  toml.add(fmt::format("norm_kind = \"{}\"", shape.gated() ? "rms" : "layer"));
  toml.add(fmt::format("activation = \"{}\"", shape.gated() ? "swiglu" : "gelu_tanh"));
  toml.add(fmt::format("positions = \"{}\"", shape.gated() ? "rotary" : "learned"));
  toml.add("parametrisation = \"completep\"", "convention: rates carry over depth (2505.01618)");
  toml.add("base_width = 64", "where the rate below was tried");
  toml.add("base_layers = 2");
  toml.add("init_std = 0.08", "measured: best of three at 4 x 128");
}

/// Micro-batches of at most this many tokens, so that activations stay small.
std::int64_t micro_batch(std::int64_t sequences, std::int64_t context, double most_tokens) {
  std::int64_t batch = sequences;
  while (batch % 2 == 0 && as_double(batch * context) > most_tokens) batch /= 2;
  return batch;
}

void add_training(TomlLines& toml, const Plan& plan) {
  const Shape& shape = plan.recommendation.shape;
  const double size = plan.budget.parameters();
  const bool gpu = size >= kGpuSize;
  // A power of two, and at least one sequence and twenty steps.
  double batch_tokens = recipe_batch_tokens(size);
  while (batch_tokens > as_double(shape.context) && plan.tokens < 20 * batch_tokens) {
    batch_tokens /= 2;
  }
  const auto sequences =
      std::max<std::int64_t>(1, std::llround(batch_tokens / as_double(shape.context)));
  const double step_tokens = as_double(sequences * shape.context);
  const auto steps = std::max<std::int64_t>(1, std::llround(plan.tokens / step_tokens));
  const std::int64_t micro = micro_batch(sequences, shape.context, gpu ? 65536 : 8192);

  toml.add("[train]");
  toml.add(fmt::format("steps = {}", steps),
           fmt::format("{} tokens in all", format_count(plan.tokens)));
  toml.add(fmt::format("batch = {}", micro));
  toml.add(fmt::format("accumulation = {}", sequences / micro),
           fmt::format("convention: {} tokens per step (2005.14165)", format_count(step_tokens)));
  toml.add("learning_rate = 0.006", "measured: best of three at 4 x 128, 2K tokens per step");
  toml.add(fmt::format("base_batch_tokens = {:.0f}", kTriedBatchTokens),
           "the rate follows batch and length from there");
  toml.add(fmt::format("base_total_tokens = {:.0f}", kTriedTotalTokens));
  toml.add("schedule = \"cosine\"", "convention (2203.15556), to a tenth of the peak");
  toml.add("floor = 0.1", "convention");
  toml.add(fmt::format("warmup = {}", std::clamp<std::int64_t>(steps / 50, 1, 2000)),
           "convention: 2 % of the steps, at most 2000");
  toml.add("beta1 = 0.9", "convention");
  toml.add("beta2 = 0.95", "convention");
  toml.add("weight_decay = 0.1", "convention");
  toml.add("clip_norm = 1.0", "convention");
  toml.add(fmt::format("precision = \"{}\"", gpu ? "bf16" : "f32"));
  toml.add(fmt::format("device = \"{}\"", gpu ? "cuda" : "cpu"));
  const std::int64_t often = std::max<std::int64_t>(1, steps / 20);
  toml.add(fmt::format("eval_every = {}", often));
  toml.add(fmt::format("checkpoint_every = {}", often));
}

/// Two digits: 620K.
std::string round_size(double size) {
  const double unit = std::pow(10, std::floor(std::log10(size)) - 1);
  return fmt::format("\"{}\"", format_count(std::round(size / unit) * unit, 2));
}

}  // namespace

double recipe_batch_tokens(double parameters) {
  const double tokens = 0.5e6 * std::sqrt(parameters / 125e6);
  return std::exp2(std::clamp(std::round(std::log2(tokens)), 14.0, 22.0));
}

std::string run_spec_text(const Plan& plan) {
  const Shape& shape = plan.recommendation.shape;
  if (shape.mixture() || shape.latent_attention()) {
    throw ConfigError("--emit fathom: the engine trains dense models only");
  }
  TomlLines toml;
  toml.add(fmt::format("# {} layers x {}, {} parameters in the blocks. Each line of the recipe is",
                       shape.layers, shape.width, format_whole(plan.parameters.non_embedding())));
  toml.add(
      "# marked: a convention of the field, or measured in small runs. Try rates of your own.");
  toml.add("#   fathom data prepare CORPUS -o tokens");
  toml.add("#   fathom train this.toml --out runs/plan");
  toml.add("[data]");
  toml.add("tokens = \"tokens\"");
  toml.add("");
  add_model(toml, shape);
  toml.add("");
  add_training(toml, plan);
  return toml.text();
}

std::string study_around_text(double parameters) {
  PlanRequest request;
  request.parameters = parameters;
  request.base.gated = true;
  const Plan plan = make_plan(request);
  const double best = plan.unrounded.layers;
  std::vector<std::string> depths;
  for (const double factor : {0.25, 0.5, 1.0, 2.0}) {
    const auto near = friendly_depths(best * factor / 1.25, best * factor * 1.25, {});
    if (near.empty()) continue;
    const std::string depth = std::to_string(near[near.size() / 2]);
    if (depths.empty() || depths.back() != depth) depths.push_back(depth);
  }
  std::vector<std::string> sizes;
  for (const double share : {16.0, 8.0, 4.0, 2.0, 1.0}) {
    sizes.push_back(round_size(parameters / share));
  }
  const bool gpu = parameters >= kGpuSize / 10;
  return fmt::format(kStudyTemplate, best, format_count(parameters), join(depths, ", "),
                     join(sizes, ", "), kTokensPerParameter, gpu ? 64 : 16, gpu ? "bf16" : "f32",
                     gpu ? "cuda" : "cpu");
}

}  // namespace fathom::planner
