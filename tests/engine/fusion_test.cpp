// The fusion pass: what it makes of a GPT block at several widths, what it leaves alone, and that a
// fused program is the program it was made of.
#include "engine/plan/fusion.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "engine/op_case.h"
#include "engine/ref/ref_executor.h"

namespace fathom::engine {
namespace {

using Names = std::vector<std::string>;

struct BlockOptions {
  std::int64_t width = 128, batch = 64, context = 128;
  DType type = DType::bf16;
  ActivationKind kind = ActivationKind::gelu_tanh;
  bool slopes = true;
  std::string kept = {};        // name of a tensor that the host wants
  std::string read_again = {};  // name of a tensor that another op reads as well
  PlanTarget target = {hopper_offers(132), {}};
};

/// Embedding, attention, feed-forward, each behind a norm, and a last norm.
class Block {
 public:
  explicit Block(const BlockOptions& options) : options_(options) {
    const std::int64_t width = options.width;
    if (options.type == DType::bf16) plan.narrow_gradients();
    const TensorId tokens = plan.input("tokens", DType::i32, rows(), 1);
    x_ = plan.activation("embedding", DType::f32, rows(), width);
    plan.append(Embed{tokens, plan.parameter("table", 50, width),
                      plan.parameter("positions", options.context, width), x_, 1});
    attend(norm("norm 1"));
    feed_forward(norm("norm 2"));
    const TensorId y = norm("norm 3");
    plan.seed_gradient(y, plan.input("dy", options.type, rows(), width));
    keep_and_read_again();
    plan.finish(options.target);
  }

  Names names(Program program = Program::train) const {
    Names found;
    for (const Op& op : plan.program(program)) found.emplace_back(op_name(op));
    return found;
  }
  bool has(const std::string& op, Program program = Program::train) const {
    const Names all = names(program);
    return std::find(all.begin(), all.end(), op) != all.end();
  }

  StepPlan plan;

 private:
  std::int64_t rows() const { return options_.batch * options_.context; }

  TensorId activation(const std::string& name, std::int64_t cols) {
    return plan.activation(name, options_.type, rows(), cols);
  }
  TensorId linear(const std::string& name, TensorId x, std::int64_t outs) {
    const TensorId weight = plan.parameter(name + ".weight", outs, plan.tensor(x).cols);
    const TensorId y = activation(name, outs);
    plan.append(Linear{x, plan.compute_copy(weight, options_.type),
                       plan.parameter(name + ".bias", 1, outs), y});
    return y;
  }
  TensorId norm(const std::string& name) {
    const std::int64_t width = options_.width;
    Norm op;
    op.x = x_;
    op.branch = branch_;
    op.gain = plan.parameter(name + ".gain", 1, width);
    op.bias = plan.parameter(name + ".bias", 1, width);
    op.y = activation(name, width);
    op.stats = plan.activation(name + " stats", DType::f32, rows(), 2);
    if (branch_.exists()) x_ = op.r = plan.activation(name + " sum", DType::f32, rows(), width);
    plan.append(op);
    return op.y;
  }
  void attend(TensorId x) {
    AttentionShape shape;
    shape.batch = options_.batch;
    shape.context = options_.context;
    shape.heads = shape.key_heads = options_.width / 32;
    shape.head_size = 32;
    const TensorId qkv = linear("qkv", x, shape.qkv_cols());
    const TensorId y = activation("attention", options_.width);
    plan.append(Attention{
        qkv, y,
        plan.activation("attention stats", DType::f32, shape.batch * shape.heads, shape.context),
        shape});
    branch_ = linear("out", y, options_.width);
  }
  void feed_forward(TensorId x) {
    const std::int64_t wide = 4 * options_.width;
    const bool gated = options_.kind == ActivationKind::swiglu;
    const TensorId u = linear("up", x, gated ? 2 * wide : wide);
    const TensorId slopes =
        options_.slopes && !gated ? plan.activation("slopes", DType::u8, rows(), wide) : TensorId{};
    const TensorId y = activation("activated", wide);
    plan.append(Activation{u, y, options_.kind, slopes});
    branch_ = linear("down", y, options_.width);
  }
  void keep_and_read_again() {
    if (!options_.kept.empty()) plan.keep(plan.find(options_.kept));
    if (options_.read_again.empty()) return;
    const Tensor tensor = plan.tensor(plan.find(options_.read_again));
    const TensorId copy = plan.activation("copy", tensor.dtype, tensor.rows, tensor.cols);
    plan.append(Dropout{plan.find(options_.read_again), copy, {}});
    plan.keep(copy);
  }

  BlockOptions options_;
  TensorId x_, branch_;
};

const Names kForward{"embed",        "norm",          "linear",
                     "attention",    "linear + norm", "linear + activation",
                     "linear + norm"};

TEST(Fusion, WholeBlockAtWidth128) {
  const Block block({.width = 128});
  Names expected = kForward;
  expected.insert(expected.end(),
                  {"norm' + bias",                      // of `down`
                   "linear'", "linear' + activation'",  // dW of down; dx of it, du, db of up
                   "linear'", "linear' + norm'",        // dW of up; dx of it, norm 2, db of out
                   "linear'", "linear'",                // dW and dx of out
                   "attention' + bias",                 // db of qkv
                   "linear'", "linear'", "norm'",       // dW and dx of qkv; norm 1 has no branch
                   "embed'", "embed'"});                // positions, table
  EXPECT_EQ(block.names(), expected);
  EXPECT_EQ(block.names(Program::train_accumulate), expected);
  EXPECT_EQ(block.names(Program::evaluate), kForward);
}

TEST(Fusion, At256NormsFuseForwardOnly) {
  const Block block({.width = 256});
  Names expected = kForward;
  expected.insert(expected.end(),
                  {"norm' + bias", "linear'", "linear' + activation'", "linear'", "linear'",
                   "norm' + bias", "linear'", "linear'", "attention' + bias", "linear'", "linear'",
                   "norm'", "embed'", "embed'"});
  EXPECT_EQ(block.names(), expected);
  EXPECT_EQ(block.names(Program::evaluate), kForward);
}

TEST(Fusion, At512ActivationsFuseAlone) {
  const Block block({.width = 512});
  const Names forward{
      "embed",  "norm", "linear", "attention", "linear", "norm", "linear + activation",
      "linear", "norm"};
  Names expected = forward;
  expected.insert(expected.end(),
                  {"norm' + bias", "linear'", "linear' + activation'", "linear'", "linear'",
                   "norm' + bias", "linear'", "linear'", "attention' + bias", "linear'", "linear'",
                   "norm'", "embed'", "embed'"});
  EXPECT_EQ(block.names(), expected);
  EXPECT_EQ(block.names(Program::evaluate), forward);
}

TEST(Fusion, OtherGpusSumColumnsOnly) {
  const Block block({.target = {generic_gpu_offers(), {}}});
  const Names expected{"embed",        "norm",
                       "linear",       "attention",
                       "linear",       "norm",
                       "linear",       "activation",
                       "linear",       "norm",
                       "norm' + bias", "linear'",
                       "linear'",      "activation' + bias",
                       "linear'",      "linear'",
                       "norm' + bias", "linear'",
                       "linear'",      "attention'",
                       "linear'",      "linear'",
                       "norm'",        "embed'",
                       "embed'"};
  EXPECT_EQ(block.names(), expected);
}

TEST(Fusion, ANobodysPlanIsLeftAlone) {
  const Block block({.target = {}});
  for (const Program program : kEnumValues<Program>) {
    for (const std::string& name : block.names(program)) {
      EXPECT_EQ(name.find('+'), std::string::npos) << name;
    }
    for (const Lane lane : block.plan.lanes(program)) EXPECT_EQ(lane, Lane::main);
  }
}

TEST(Fusion, F32FusesNoGemm) {
  const Block block({.type = DType::f32, .slopes = false});
  EXPECT_FALSE(block.has("linear + activation"));
  EXPECT_FALSE(block.has("linear + norm"));
  EXPECT_FALSE(block.has("linear' + activation'"));
  EXPECT_FALSE(block.has("linear' + norm'"));
  EXPECT_TRUE(block.has("activation' + bias"));
  EXPECT_TRUE(block.has("norm' + bias"));
  EXPECT_FALSE(block.has("attention' + bias"));
}

TEST(Fusion, WhatTheHostWantsOrAnotherReadsStaysInMemory) {
  for (const bool keep : {true, false}) {
    const Block up(keep ? BlockOptions{.kept = "up"} : BlockOptions{.read_again = "up"});
    for (const Program program : {Program::train, Program::evaluate}) {
      EXPECT_FALSE(up.has("linear + activation", program));
      EXPECT_TRUE(up.has("linear + norm", program));
    }
    EXPECT_FALSE(up.has("linear' + activation'")) << "the slopes have another order";
    const Block out(keep ? BlockOptions{.kept = "out"} : BlockOptions{.read_again = "out"});
    const Names names = out.names();
    EXPECT_EQ(std::count(names.begin(), names.end(), "linear + norm"), 1) << "that of down";
  }
}

TEST(Fusion, AnActivationFusesInBothDirectionsOrNone) {
  // Another reader of the result: its gradient has two contributions.
  const Block block({.read_again = "activated"});
  EXPECT_TRUE(block.has("linear + activation")) << "a reader without a gradient changes nothing";
  const Block gated({.kind = ActivationKind::swiglu});
  EXPECT_FALSE(gated.has("linear + activation"));
  const Block without_slopes({.slopes = false});
  EXPECT_FALSE(without_slopes.has("linear + activation"));
  EXPECT_FALSE(without_slopes.has("linear + activation", Program::evaluate));
  const Block ragged({.batch = 3, .context = 100});
  EXPECT_FALSE(ragged.has("linear + activation"));
  EXPECT_FALSE(ragged.has("linear' + activation'"));
  EXPECT_TRUE(ragged.has("linear + norm"));
}

TEST(Fusion, ABiasMovesToTheActivationThatAloneReadsIt) {
  const auto bias_of_up = [](const Block& block) {
    for (const Op& op : block.plan.program(Program::train)) {
      const auto* linear = std::get_if<Linear>(&op);
      if (linear && linear->y == block.plan.find("up")) return linear->bias.exists();
    }
    return false;
  };
  const PlanTarget generic{generic_gpu_offers(), {}};
  EXPECT_FALSE(bias_of_up(Block({.target = generic})));
  EXPECT_TRUE(bias_of_up(Block({.kept = "up", .target = generic})));
  EXPECT_TRUE(bias_of_up(Block({.read_again = "up", .target = generic})));
  EXPECT_TRUE(bias_of_up(Block({.target = {}})));
}

TEST(Fusion, BiasesThatGemmsAddHaveTheTypeOfTheResult) {
  const Block block({.target = {generic_gpu_offers(), {}}});
  for (const Op& op : block.plan.program(Program::train)) {
    const auto* linear = std::get_if<Linear>(&op);
    if (linear == nullptr || !linear->bias.exists()) continue;
    EXPECT_EQ(block.plan.tensor(linear->bias).dtype, DType::bf16);
    EXPECT_TRUE(block.plan.tensor(linear->bias).master.exists());
  }
}

TEST(Fusion, AsksOnceForEveryShapeAndObeys) {
  std::vector<LinearNormShape> asked;
  int calls = 0;
  PlanTarget target{hopper_offers(132), {}};
  target.measure = [&](const std::vector<LinearNormShape>& shapes) {
    ++calls;
    asked.insert(asked.end(), shapes.begin(), shapes.end());
    std::vector<bool> pays;
    for (const LinearNormShape& shape : shapes) pays.push_back(shape.backward);
    return pays;
  };
  const Block block({.width = 128, .target = target});
  EXPECT_EQ(calls, 1);
  const std::int64_t rows = 64 * 128;
  const std::vector<LinearNormShape> expected{
      {.rows = rows, .width = 128, .depth = 128},
      {.rows = rows, .width = 128, .depth = 512},
      {.rows = rows, .width = 128, .depth = 512, .backward = true, .branch_sums = true}};
  EXPECT_EQ(asked, expected);
  EXPECT_FALSE(block.has("linear + norm"));
  EXPECT_FALSE(block.has("linear + norm", Program::evaluate));
  EXPECT_TRUE(block.has("linear' + norm'"));
}

TEST(Fusion, ParameterGradientsGoToTheSecondLaneUnlessTheyAreLong) {
  const auto side_ops = [](const Block& block) {
    int count = 0;
    const auto& ops = block.plan.program(Program::train);
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (block.plan.lanes(Program::train)[i] != Lane::side) continue;
      ++count;
      const auto* linear = std::get_if<LinearBackward>(&ops[i]);
      const auto* embed = std::get_if<EmbedBackward>(&ops[i]);
      EXPECT_TRUE((linear && !linear->dx.exists()) || (embed && !embed->d_table.exists()));
    }
    return count;
  };
  EXPECT_EQ(side_ops(Block({.width = 128})), 5);  // four weights and the positions
  BlockOptions impatient{.width = 128};
  impatient.target.offers.long_gemm_flops = 2.0 * 8192 * 128 * 512 - 1;  // up and down are longer
  EXPECT_EQ(side_ops(Block(impatient)), 3);
}

TEST(Fusion, TakesNoMoreMemoryThanTheOpsApart) {
  for (const std::int64_t width : {128, 256, 512}) {
    PlanTarget apart;
    apart.offers.byte_slopes = true;
    const Block fused({.width = width}), bare({.width = width, .target = apart});
    EXPECT_LE(fused.plan.storage_bytes(Storage::activation),
              bare.plan.storage_bytes(Storage::activation));
    EXPECT_EQ(fused.plan.tensor(fused.plan.find("up")).offset_bytes, -1) << "never in memory";
  }
}

TEST(Fusion, OffersByName) {
  for (const std::string& name : offer_names()) EXPECT_EQ(find_offers(name).name, name);
  EXPECT_THROW(find_offers("hoper"), ConfigError);
}

class FusedPrograms : public testing::TestWithParam<OpCase> {};

TEST_P(FusedPrograms, AreTheOpsTheyWereMadeOf) {
  OpCase apart = GetParam();
  apart.target = {};
  const BuiltCase fused(GetParam()), unfused(apart);
  bool any = false;
  for (const Op& op : fused.plan.program(Program::train)) {
    any = any || std::string(op_name(op)).find('+') != std::string::npos;
  }
  EXPECT_TRUE(any) << "nothing was fused";
  RefExecutor first(fused.plan), second(unfused.plan);
  EXPECT_EQ(everything(first, GetParam(), fused), everything(second, apart, unfused));
}

INSTANTIATE_TEST_SUITE_P(Cases, FusedPrograms, testing::ValuesIn(fused_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace fathom::engine
