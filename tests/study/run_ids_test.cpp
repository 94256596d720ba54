// Run ids name folders that people keep: the ids of runs trained long ago must stay.
#include <gtest/gtest.h>

#include <map>

#include "study/planned_run.h"
#include "study/study_spec.h"

namespace fathom::study {
namespace {

/// The tokens of docs/results/levine-h200.
constexpr TokenFacts kTokens{{.low = 0x1d4a2403b9e14464, .high = 0xab4bbf069575176d}, 2000};

const std::string kLevine = R"([corpus]
path = "wiki.txt.zst"
tokenizer = "bpe"
vocab = 2000
eval_tokens = 500000
[grid]
kind = "ladder"
depths = [2, 3, 6, 12, 24]
sizes = ["200K", "500K", "1.2M", "3M", "7.5M", "19M"]
head_size = 16
tolerance = 0.2
min_width = 32
[budget]
tokens = "100M"
warmup_share = 0.02
[seeds]
all = [1]
extra = [2]
extra_between = ["1M", "4M"]
[model]
context = 256
activation = "gelu_tanh"
parametrisation = "completep"
base_width = 64
base_layers = 2
init_std = 0.08
[train]
batch = 256
learning_rate = 0.006
schedule = "wsd"
decay = 0.2
floor = 0.0
precision = "bf16"
eval_every = 500
[run]
device = "cuda"
)";

/// Values that no preset has.
const std::string kOdd = R"([corpus]
path = "c.txt"
tokenizer = "bytes"
eval_tokens = 512
[grid]
kind = "list"
shapes = ["3x64"]
head_size = 16
[budget]
tokens = "64K"
[seeds]
all = [7]
[model]
context = 32
norm = "post"
norm_kind = "rms"
depth_scheme = "deepnorm"
activation = "swiglu"
attention = "linear"
mask = "strict"
positions = "rotary"
tied = false
dropout = 0.1
order = "sfsfsf"
[train]
batch = 8
learning_rate = 0.003
schedule = "linear"
precision = "bf16"
base_batch_tokens = 256
base_total_tokens = 25600
[run]
device = "cuda"
)";

std::map<std::string, std::string> ids_of(const std::string& text) {
  std::map<std::string, std::string> ids;
  for (const PlannedRun& run : plan_runs(read_study_spec_text(text, "s.toml"), kTokens)) {
    ids[run.label()] = run.id;
  }
  return ids;
}

TEST(RunIds, ThoseOfThePublishedStudyStay) {
  auto ids = ids_of(kLevine);
  EXPECT_EQ(ids.size(), 36u);
  EXPECT_EQ(ids["2x896 seed 1"], "a2466613195d712f");
  EXPECT_EQ(ids["12x368 seed 1"], "67d6d2009fb299a2");
  EXPECT_EQ(ids["24x256 seed 1"], "b0270bba19cd1f94");
}

TEST(RunIds, OfEveryKindOfValueStay) {
  EXPECT_EQ(ids_of(kOdd)["3x64 seed 7"], "e57374119af3a477");
  EXPECT_EQ(ids_of(preset_text("quick"))["4x112 seed 1"], "726253a090be3bbc");
}

TEST(RunIds, TheHashedTextStays) {
  const auto runs = plan_runs(read_study_spec_text(kOdd, "s.toml"), kTokens);
  EXPECT_EQ(to_toml(runs.front().spec), R"([data]
tokens = ""
eval_tokens = 512

[model]
layers = 3
width = 64
heads = 4
key_heads = 0
head_size = 0
ffn = 0
vocab = 2000
context = 32
embedding_rank = 0
tied = false
biases = true
norm = "post"
norm_kind = "rms"
norm_epsilon = 1e-05
residual = true
feed_forward = true
activation = "swiglu"
order = "sfsfsf"
attention = "linear"
mask = "strict"
window = 0
positions = "rotary"
rotary_base = 10000.0
dropout = 0.1
parametrisation = "standard"
depth_scheme = "deepnorm"
init_std = 0.02
base_width = 256
base_layers = 2
depth_alpha = 1.0

[train]
steps = 250
batch = 8
accumulation = 1
learning_rate = 0.003
schedule = "linear"
warmup = 25
floor = 0.1
decay = 0.2
beta1 = 0.9
beta2 = 0.95
weight_decay = 0.1
epsilon = 1e-08
clip_norm = 1.0
seed = 7
precision = "bf16"
device = "cuda"
threads = 1
eval_every = 0
checkpoint_every = 0
patience = 0
base_batch_tokens = 256
base_total_tokens = 25600
)");
}

}  // namespace
}  // namespace fathom::study
