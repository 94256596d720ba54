// Planning and training count the same thing: the closed forms of a shape against the parameters
// and products of the model that is built from it, over members of the family.
#include <gtest/gtest.h>

#include "model/transformer.h"
#include "shape/flops.h"
#include "shape/parameters.h"
#include "study/planned_run.h"
#include "tiny_study.h"
#include "train/step_cost.h"

namespace fathom::study {
namespace {

using model::ModelSpec;

struct Member {
  const char* name;
  void (*vary)(ModelSpec&);
};

/// Every choice that changes a count, alone and in the combinations people train.
const Member kMembers[] = {
    {"gpt2", [](ModelSpec&) {}},
    {"one layer", [](ModelSpec& s) { s.layers = 1; }},
    {"untied", [](ModelSpec& s) { s.tied = false; }},
    {"no biases", [](ModelSpec& s) { s.biases = false; }},
    {"rms norm", [](ModelSpec& s) { s.norm_kind = engine::NormKind::rms; }},
    {"post-norm", [](ModelSpec& s) { s.norm = model::NormPlace::post; }},
    {"no norm", [](ModelSpec& s) { s.norm = model::NormPlace::none; }},
    {"rotary", [](ModelSpec& s) { s.positions = model::Positions::rotary; }},
    {"no positions", [](ModelSpec& s) { s.positions = model::Positions::none; }},
    {"gated", [](ModelSpec& s) { s.activation = model::FeedForward::swiglu; }},
    {"attention only", [](ModelSpec& s) { s.feed_forward = false; }},
    {"own ffn", [](ModelSpec& s) { s.ffn = 40; }},
    {"own head size", [](ModelSpec& s) { s.head_size = 24; }},
    {"grouped heads", [](ModelSpec& s) { s.key_heads = 1; }},
    {"long context", [](ModelSpec& s) { s.context = 33; }},
    {"llama",
     [](ModelSpec& s) {
       s.biases = false;
       s.tied = false;
       s.norm_kind = engine::NormKind::rms;
       s.positions = model::Positions::rotary;
       s.activation = model::FeedForward::swiglu;
       s.ffn = 96;
       s.key_heads = 2;
     }},
};

ModelSpec make_spec(const Member& member) {
  ModelSpec spec;
  spec.layers = 3;
  spec.width = 32;
  spec.heads = 4;
  spec.vocab = 50;
  spec.context = 12;
  member.vary(spec);
  return spec;
}

std::unique_ptr<const model::Transformer> build(const model::ModelSpec& spec, std::int64_t batch) {
  model::BuildOptions options;
  options.batch = batch;
  return model::build_transformer(spec, options);
}

TEST(Counts, ShapesAndModelsHaveEqualParameters) {
  for (const Member& member : kMembers) {
    SCOPED_TRACE(member.name);
    const ModelSpec spec = make_spec(member);
    const auto model = build(spec, 2);
    const ParameterCount count = count_parameters(shape_of(spec));
    EXPECT_EQ(count.total(), model->parameter_count());
    EXPECT_EQ(count.non_embedding(), model->non_embedding_count());
  }
}

TEST(Counts, ShapesAndPlansHaveEqualTrainingFlops) {
  for (const Member& member : kMembers) {
    SCOPED_TRACE(member.name);
    const ModelSpec spec = make_spec(member);
    const auto model = build(spec, 2);
    const double per_token = count_flops(shape_of(spec)).train_per_token;
    EXPECT_EQ(per_token * static_cast<double>(model->rows()), train::training_flops(model->plan));
  }
}

TEST(Counts, AStudyPlansWhatItsModelsAre) {
  const TinyStudy tiny;
  for (const PlannedRun& run : plan_runs(tiny.spec(), TokenFacts{{}, 257})) {
    SCOPED_TRACE(run.label());
    const auto model = build(run.spec.model, run.spec.batch);
    EXPECT_EQ(run.total_parameters, static_cast<double>(model->parameter_count()));
    EXPECT_EQ(run.parameters, static_cast<double>(model->non_embedding_count()));
    const double steps = run.tokens / static_cast<double>(model->rows());
    EXPECT_EQ(run.flops, steps * train::training_flops(model->plan));
  }
}

}  // namespace
}  // namespace fathom::study
