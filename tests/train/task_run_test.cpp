// Runs on tasks: masked targets, scores in the record, resumption bit for bit, refusals.
#include <cmath>

#include "data/tasks/task.h"
#include "run_fixture.h"
#include "train/metrics_file.h"
#include "train/run_folder.h"

namespace fathom::train {
namespace {

class TaskRun : public testing::Test {
 protected:
  static RunSpec spec(const std::vector<std::string>& settings = {}) {
    return read_run_spec_text(
        "[data]\ntask = \"k-hop\"\nhops = [0, 1]\neval_tokens = 1024\n"
        "[model]\nlayers = 2\nwidth = 32\nheads = 2\ncontext = 16\ndropout = 0.1\n"
        "[train]\nsteps = 12\nbatch = 4\naccumulation = 2\nlearning_rate = 0.003\n"
        "eval_every = 4\ncheckpoint_every = 3\n",
        "test.toml", settings);
  }

  RunRecord run(const RunSpec& spec, const std::string& name, std::function<bool()> stop = {}) {
    RunOptions options;
    options.directory = folder_ / name;
    options.resume = true;
    options.stop = std::move(stop);
    return run_training(spec, options);
  }

  std::string file(const std::string& name, const std::string& what) const {
    return read_text_file(folder_ / name / what);
  }

  ScratchFolder folder_;
};

TEST_F(TaskRun, ResolvesItsParametersAndItsVocabulary) {
  const RunSpec resolved = spec();
  EXPECT_EQ(resolved.model.vocab, 7);
  EXPECT_EQ(resolved.task.symbols, 4);
  const std::string text = to_toml(resolved);
  EXPECT_EQ(to_toml(read_run_spec_text(text, "again.toml")), text);
  EXPECT_NE(run_id(resolved, {}), run_id(spec({"data.hops=[0, 2]"}), {}));
}

TEST_F(TaskRun, LeavesScoresInRecordAndMetrics) {
  const RunRecord record = run(spec({"train.steps=4"}), "a");
  ASSERT_TRUE(record.scores);
  EXPECT_EQ(record.scores->group_name, "hops");
  EXPECT_EQ(record.scores->groups.size(), 2u);
  EXPECT_EQ(record.scores->by_position.size(), 16u);
  EXPECT_GT(record.final_loss, 0);
  EXPECT_TRUE(std::isnan(record.final_bits_per_byte));
  const RunRecord read = read_run_record(RunFolder(folder_ / "a").record());
  ASSERT_TRUE(read.scores);
  EXPECT_EQ(read.scores->accuracy, record.scores->accuracy);
  EXPECT_EQ(read.scores->groups, record.scores->groups);
  double accuracy = NAN;
  read_evaluations(RunFolder(folder_ / "a").metrics(),
                   [&](std::int64_t, const Evaluation& each) { accuracy = each.accuracy; });
  EXPECT_EQ(accuracy, record.scores->accuracy);
}

TEST_F(TaskRun, GoesOnBitForBitAfterAStop) {
  const RunRecord whole = run(spec(), "whole");
  int looked = 0;
  EXPECT_EQ(run(spec(), "parts", [&] { return ++looked == 5; }).status, RunStatus::interrupted);
  const RunRecord resumed = run(spec(), "parts");
  EXPECT_EQ(resumed.final_loss, whole.final_loss);
  EXPECT_EQ(resumed.scores->accuracy, whole.scores->accuracy);
  EXPECT_EQ(file("whole", "metrics.jsonl"), file("parts", "metrics.jsonl"));
  EXPECT_TRUE(file("whole", "checkpoint/state.safetensors") ==
              file("parts", "checkpoint/state.safetensors"));
  // Only the record was lost: it is made again, scores and all.
  std::filesystem::remove(folder_ / "parts" / "record.json");
  EXPECT_EQ(run(spec(), "parts").scores->groups, whole.scores->groups);
}

/// The engine's mean over targets that count, against the same model's losses one by one.
TEST_F(TaskRun, LossIsTheMeanOfTheTargetsThatCount) {
  const RunSpec once =
      spec({"model.dropout=0", "train.accumulation=1", "train.learning_rate=0.0", "train.batch=3"});
  Trainer trainer(once, nullptr);
  const double loss = trainer.step().loss;
  std::vector<float> losses(static_cast<std::size_t>(trainer.model().rows()));
  trainer.executor().read(trainer.model().losses, losses);
  const auto task = data::make_task(once.task, once.model.context);
  std::vector<data::TokenId> inputs(16), targets(16);
  double sum = 0;
  int counted = 0;
  for (std::size_t row = 0; row < 3; ++row) {
    task->example(once.seed, data::ExampleUse::training, row, inputs, targets);
    for (std::size_t t = 0; t < 16; ++t) {
      const double each = losses[16 * row + t];
      if (targets[t] == data::kNoTarget) {
        EXPECT_EQ(each, 0);
      } else {
        sum += each;
        ++counted;
      }
    }
  }
  EXPECT_EQ(counted, 45);
  EXPECT_NEAR(loss, sum / counted, 1e-5);
}

TEST_F(TaskRun, TrainsInHalfPrecision) {
  const RunRecord record = run(spec({"train.precision=bf16", "train.steps=4"}), "half");
  const RunRecord whole = run(spec({"train.steps=4"}), "whole");
  EXPECT_NEAR(record.final_loss, whole.final_loss, 0.02);
}

TEST_F(TaskRun, CudaStreamsTheSameBatchesAndGoesOnBitForBit) {
  if (!engine::find_cuda_device()) GTEST_SKIP() << "no CUDA device";
  const std::string device = "train.device=cuda";
  const RunRecord cpu = run(spec({"model.dropout=0"}), "cpu");
  EXPECT_NEAR(run(spec({"model.dropout=0", device}), "cuda").final_loss, cpu.final_loss, 1e-3);
  for (const std::string precision : {"f32", "bf16"}) {
    const RunSpec on_gpu = spec({device, "train.precision=" + precision});
    const RunRecord whole = run(on_gpu, "whole" + precision);
    int looked = 0;
    run(on_gpu, "parts" + precision, [&] { return ++looked == 5; });
    EXPECT_EQ(run(on_gpu, "parts" + precision).final_loss, whole.final_loss);
    EXPECT_EQ(file("whole" + precision, "metrics.jsonl"),
              file("parts" + precision, "metrics.jsonl"));
  }
}

TEST_F(TaskRun, LearnsWhatIsEasy) {
  const RunRecord record = run(spec({"data.hops=[0]", "train.steps=150", "model.dropout=0",
                                     "train.batch=16", "train.accumulation=1", "model.layers=1"}),
                               "easy");
  EXPECT_GT(record.scores->accuracy, 0.99);
  EXPECT_GT(record.scores->sequence_accuracy, 0.95);
  EXPECT_LT(record.scores->majority, 0.4);
}

TEST_F(TaskRun, WrongSpecsGetOneLine) {
  const auto refused = [](const std::vector<std::string>& settings, const std::string& words) {
    try {
      spec(settings);
      ADD_FAILURE() << words;
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  refused({"data.tokens=x"}, "exclude each other");
  refused({"data.task=k-hopp"}, "k-hop");
  refused({"data.task=none"}, "tokens");
  refused({"data.vertices=8"}, "no parameter vertices");
  refused({"data.hops=[30]"}, "30 hops need 32 characters");
  refused({"model.vocab=5"}, "smaller than the 7 tokens of task k-hop");
  refused({"model.heads=3"}, "heads = 3 must divide width");
  refused({"data.task=cycles", "data.hops=[]", "data.vertices=9", "model.context=9"},
          "vertices = 9 must be even");
  refused({"data.task=listops", "data.hops=[]", "data.class_first=true", "model.context=128"},
          "data.class_first asks before the model has read");
  refused({"data.task=sort", "data.hops=[]", "data.in_place=true"},
          "asks before the model has read");
}

}  // namespace
}  // namespace fathom::train
