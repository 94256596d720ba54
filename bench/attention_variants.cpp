// Time of attention, forward and backward, by variant and context, at an equal number of tokens:
//
//   build/release/attention_variants [cpu | cuda] [TOKENS, default 16384] [THREADS, default 2]
//
// One layer, width 128, 4 heads; bf16 on a GPU, f32 on a CPU. Milliseconds are the least of five
// runs, for the ops "attention" and "keys" and their backwards only. Time proportional to the
// context shows as a row of numbers that double; features, and patterns whose blocks are skipped,
// stay constant.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/error.h"
#include "engine/device.h"
#include "engine/plan/op_cost.h"
#include "model/transformer.h"

namespace fathom {
namespace {

using engine::AttentionKind;
using engine::MaskKind;
using model::KeySource;
using model::ModelSpec;

struct Variant {
  const char* name;
  void (*change)(ModelSpec&);
};

constexpr Variant kVariants[] = {
    {"softmax, causal", [](ModelSpec&) {}},
    {"softmax", [](ModelSpec& s) { s.mask = MaskKind::bidirectional; }},
    {"local: own block of 64", [](ModelSpec& s) { s.own_block = true; }},
    {"strided: window 32, stride 128", [](ModelSpec& s) { s.window = 32, s.stride = 128; }},
    {"window 64 + 1 global",
     [](ModelSpec& s) {
       s.mask = MaskKind::bidirectional;
       s.window = 64;
       s.global_tokens = 1;
     }},
    {"window 64 + 1 global + 2 random",
     [](ModelSpec& s) {
       s.mask = MaskKind::bidirectional;
       s.window = 64;
       s.global_tokens = 1;
       s.random_blocks = 2;
     }},
    {"linear, causal", [](ModelSpec& s) { s.attention = AttentionKind::linear; }},
    {"linear",
     [](ModelSpec& s) {
       s.attention = AttentionKind::linear;
       s.mask = MaskKind::bidirectional;
     }},
    {"performer 64, causal",
     [](ModelSpec& s) {
       s.attention = AttentionKind::performer;
       s.features = 64;
     }},
    {"projected to 64",
     [](ModelSpec& s) {
       s.mask = MaskKind::bidirectional;
       s.keys = KeySource::projected;
       s.projected_length = 64;
     }},
    {"synthesised, causal", [](ModelSpec& s) { s.keys = KeySource::synthesised; }},
    {"normalised, causal", [](ModelSpec& s) { s.attention = AttentionKind::normalised; }},
    {"smeared, causal", [](ModelSpec& s) { s.keys = KeySource::smeared; }},
};

bool is_attention(const engine::Op& op) {
  const std::string name = engine::op_name(op);
  return name.starts_with("attention") || name.starts_with("keys");
}

struct Measured {
  double milliseconds = 0, gigaflops = 0;
};

Measured measure(const Variant& variant, std::int64_t context, std::int64_t tokens,
                 const engine::Device& device) {
  ModelSpec spec;
  spec.layers = 1;
  spec.width = 128;
  spec.heads = 4;
  spec.context = context;
  spec.feed_forward = false;
  variant.change(spec);
  model::BuildOptions options;
  options.batch = std::max<std::int64_t>(1, tokens / context);
  const bool cuda = device.kind == engine::DeviceKind::cuda;
  options.precision = cuda ? model::Precision::bf16 : model::Precision::f32;
  options.target = target_of(device);
  const auto model = build_transformer(spec, options);
  const auto executor = make_executor(model->plan, device);
  initialise(*model, *executor, 1);
  const std::vector<std::int32_t> ids(static_cast<std::size_t>(model->rows()), 7);
  executor->write_tokens(model->tokens, ids);
  executor->write_tokens(model->targets, ids);
  const std::vector<engine::Op>& ops = model->plan.program(engine::Program::train);
  Measured least;
  for (int run = 0; run < 6; ++run) {  // the first warms up
    double seconds = 0;
    executor->run_timed(engine::Program::train, {}, [&](std::size_t op, double time) {
      if (is_attention(ops[op])) seconds += time;
    });
    if (run == 1 || 1e3 * seconds < least.milliseconds) least.milliseconds = 1e3 * seconds;
    if (run == 0) least.milliseconds = 1e3 * seconds;
  }
  for (const engine::Op& op : ops) {
    if (is_attention(op)) least.gigaflops += 1e-9 * flops_of(op, model->plan.tensors());
  }
  return least;
}

void print_table(const engine::Device& device, std::int64_t tokens) {
  const std::vector<std::int64_t> contexts{256, 512, 1024, 2048, 4096};
  fmt::print("{:<34}", fmt::format("ms of {} tokens (GFLOP)", tokens));
  for (const std::int64_t context : contexts) fmt::print("{:>18}", fmt::format("T {}", context));
  fmt::print("\n");
  for (const Variant& variant : kVariants) {
    fmt::print("{:<34}", variant.name);
    for (const std::int64_t context : contexts) {
      const Measured m = measure(variant, context, tokens, device);
      fmt::print("{:>18}", fmt::format("{:.2f} ({:.2f})", m.milliseconds, m.gigaflops));
      std::fflush(stdout);
    }
    fmt::print("\n");
  }
}

}  // namespace
}  // namespace fathom

int main(int count, char** arguments) {
  using namespace fathom;
  const bool cuda = count > 1 && std::string(arguments[1]) == "cuda";
  engine::Device device{.kind = cuda ? engine::DeviceKind::cuda : engine::DeviceKind::cpu};
  device.threads = count > 3 ? std::atoi(arguments[3]) : 2;
  try {
    print_table(device, count > 2 ? std::atoll(arguments[2]) : 16384);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return error.exit_code();
  }
  return 0;
}
