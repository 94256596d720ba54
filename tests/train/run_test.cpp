// Runs in their directories: determinism, resume after a stop, a kill and a full disk, divergence,
// early stop.
#include "train/run.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "engine/cuda/module.h"
#include "field_count.h"
#include "train/run_fixture.h"

namespace fathom::train {
namespace {

TEST_F(RunTest, LearnsAndRepeatsBitForBit) {
  const RunRecord record = run(spec(), "a");
  EXPECT_EQ(record.status, RunStatus::finished);
  EXPECT_EQ(record.steps, 12);
  EXPECT_EQ(record.tokens, 12 * 4 * 2 * 32);
  EXPECT_LT(record.final_loss, std::log(257.0));
  EXPECT_NEAR(record.final_bits_per_byte, record.final_loss / std::log(2.0), 0.05);
  run(spec(), "b");
  expect_equal_runs("a", "b");
  run(spec({"train.seed=2"}), "c");
  EXPECT_NE(file("a", "metrics.jsonl"), file("c", "metrics.jsonl"));
}

TEST_F(RunTest, TwoThreadsRepeatBitForBit) {
  // Wide enough for oneDNN to divide its products between the threads.
  const std::vector<std::string> settings = {"train.threads=2", "model.width=96", "train.steps=6"};
  for (const std::string precision : {"f32", "bf16"}) {
    auto chosen = settings;
    chosen.push_back("train.precision=" + precision);
    run(spec(chosen), "a_" + precision);
    run(spec(chosen), "b_" + precision);
    expect_equal_runs("a_" + precision, "b_" + precision);
  }
}

/// One model per core: neither a neighbour on another core nor the number of cores that the
/// process may use changes a bit.
TEST_F(RunTest, OneModelPerCoreDoesNotDependOnTheCores) {
  run(spec(), "alone");
  run(spec({"train.seed=2"}), "other_alone");
  {
    std::jthread neighbour([&] { run(spec({"train.seed=2"}), "other_beside"); });
    run(spec(), "beside");
  }
  expect_equal_runs("alone", "beside");
  expect_equal_runs("other_alone", "other_beside");
  EXPECT_EQ(in_child([&] {
              cpu_set_t allowed, first;
              sched_getaffinity(0, sizeof allowed, &allowed);
              CPU_ZERO(&first);
              for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
                if (!CPU_ISSET(cpu, &allowed)) continue;
                CPU_SET(cpu, &first);
                break;
              }
              if (sched_setaffinity(0, sizeof first, &first) != 0) _exit(1);
              run(spec(), "pinned");
            }),
            0);
  expect_equal_runs("alone", "pinned");
}

TEST_F(RunTest, GradientAccumulationIsTheLargerBatch) {
  const auto whole = run(spec({"train.batch=8", "train.accumulation=1", "model.dropout=0.0"}), "a");
  const auto parts = run(spec({"model.dropout=0.0"}), "b");
  EXPECT_NEAR(whole.final_loss, parts.final_loss, 1e-4);
}

TEST_F(RunTest, ResumesAfterAStopAsIfThereWereNone) {
  run(spec(), "whole");
  int steps = 0;
  const auto stopped = run(
      spec(), "parts", false, [&](const auto&) { ++steps; }, [&] { return steps == 5; });
  EXPECT_EQ(stopped.status, RunStatus::interrupted);
  EXPECT_THROW(run(spec(), "parts"), ConfigError);
  EXPECT_EQ(run(spec(), "parts", true).status, RunStatus::finished);
  expect_equal_runs("whole", "parts");
}

TEST_F(RunTest, ALongStepIsGivenUpAsIfItHadNotBegun) {
  run(spec(), "whole");
  for (const std::int64_t last :
       {0, 4, 12}) {  // before the first, after an evaluation, in the last
    const std::string name = "parts" + std::to_string(last);
    std::atomic<std::int64_t> steps = 0, asked = 0;
    RunOptions options;
    options.directory = folder_ / name;
    options.on_step = [&](const RunProgress& progress) { steps = progress.step; };
    options.stop = [] { return false; };  // would only be asked when the step has ended
    options.stop_in_step = [&] {
      if (steps != last) return false;
      ++asked;
      std::this_thread::sleep_for(std::chrono::milliseconds(400));  // the step is long
      return true;
    };
    const RunRecord stopped = run_training(spec(), *tokens_, options);
    EXPECT_EQ(stopped.status, RunStatus::interrupted);
    EXPECT_EQ(stopped.steps, last);
    EXPECT_GE(asked, 3);   // not before a second had passed
    EXPECT_LE(asked, 12);  // and soon after it, with several threads
    EXPECT_EQ(run(spec(), name, true).status, RunStatus::finished);
    expect_equal_runs("whole", name);
  }
}

TEST_F(RunTest, LossesMayBeLookedAtLater) {
  RunOptions options;
  options.steps_ahead = 3;
  const auto run_ahead = [&](const RunSpec& spec, const std::string& name) {
    options.directory = folder_ / name;
    return run_training(spec, *tokens_, options);
  };
  // No period divides the look ahead: it must not reach beyond an evaluation or a checkpoint.
  const RunRecord expected = run(spec(), "one_by_one");
  const RunRecord actual = run_ahead(spec(), "ahead");
  EXPECT_EQ(actual.steps, expected.steps);
  EXPECT_EQ(actual.final_loss, expected.final_loss);
  expect_equal_runs("one_by_one", "ahead");
  int asked = 0;
  options.stop = [&] { return ++asked == 1; };
  const RunSpec rare = spec({"train.eval_every=6", "train.checkpoint_every=0"});
  run(rare, "rare");
  const RunRecord stopped = run_ahead(rare, "rare_ahead");
  EXPECT_EQ(stopped.status, RunStatus::interrupted);
  EXPECT_EQ(stopped.steps, 4);  // the step looked at and three on their way
  EXPECT_EQ(asked, 1);
  options.stop = {};
  options.resume = true;
  run_ahead(rare, "rare_ahead");
  expect_equal_runs("rare", "rare_ahead");
  const RunSpec wild = spec(
      {"train.learning_rate=1000.0", "train.clip_norm=0.0", "train.warmup=0", "train.steps=60"});
  const RunRecord diverged = run(wild, "wild");
  const RunRecord diverged_ahead = run_ahead(wild, "wild_ahead");
  EXPECT_EQ(diverged_ahead.status, RunStatus::diverged);
  EXPECT_EQ(diverged_ahead.steps, diverged.steps);
  EXPECT_EQ(diverged_ahead.reason, diverged.reason);
  EXPECT_EQ(file("wild", "metrics.jsonl"), file("wild_ahead", "metrics.jsonl"));
}

TEST_F(RunTest, ResumesAfterAKill) {
  run(spec(), "whole");
  for (const int fatal_step : {2, 7, 11}) {
    const std::string name = "killed" + std::to_string(fatal_step);
    const int status = in_child([&] {
      run(spec(), name, false, [&](const RunProgress& progress) {
        if (progress.step == fatal_step) kill(getpid(), SIGKILL);
      });
    });
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    EXPECT_EQ(run(spec(), name, true).status, RunStatus::finished);
    expect_equal_runs("whole", name);
  }
}

TEST_F(RunTest, AFullDiskLeavesThePreviousCheckpoint) {
  run(spec(), "whole");
  const int status = in_child([&] {
    signal(SIGXFSZ, SIG_IGN);
    run(spec(), "full", false, [&](const RunProgress& progress) {
      if (progress.step != 5) return;
      const rlimit small{20'000, 20'000};  // bytes a file; less than a checkpoint
      setrlimit(RLIMIT_FSIZE, &small);
    });
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 3);  // DataError
  EXPECT_EQ(run(spec(), "full", true).status, RunStatus::finished);
  expect_equal_runs("whole", "full");
}

TEST_F(RunTest, ADivergedRunIsAResult) {
  const RunSpec wild = spec(
      {"train.learning_rate=1000.0", "train.clip_norm=0.0", "train.warmup=0", "train.steps=60"});
  const RunRecord record = run(wild, "wild");
  EXPECT_EQ(record.status, RunStatus::diverged);
  EXPECT_LT(record.steps, 60);
  EXPECT_EQ(run(wild, "wild").status, RunStatus::diverged);  // read back, not repeated
}

TEST_F(RunTest, StopsEarlyWhenPatienceRunsOut) {
  // A learning rate of zero never improves on the first evaluation.
  const RunRecord record = run(spec({"train.learning_rate=0.0", "train.eval_every=1",
                                     "train.patience=3", "model.dropout=0.0"}),
                               "still");
  EXPECT_EQ(record.status, RunStatus::early_stopped);
  EXPECT_EQ(record.steps, 4);
}

TEST_F(RunTest, ADirectoryHoldsOneRun) {
  run(spec(), "a");
  EXPECT_EQ(run(spec(), "a").steps, 12);
  EXPECT_THROW(run(spec({"train.seed=5"}), "a"), ConfigError);
}

TEST_F(RunTest, Bf16TrainsToNearlyTheSameLoss) {
  const double exact = run(spec(), "f32").final_loss;
  EXPECT_NEAR(run(spec({"train.precision=bf16"}), "bf16").final_loss, exact, 0.02);
}

TEST_F(RunTest, ACheckpointOfAnotherModelIsRefused) {
  run(spec(), "a");
  Trainer other(resolve(spec({"model.width=48"}), *tokens_), *tokens_);
  EXPECT_THROW(other.load(folder_ / "a" / "checkpoint" / "state.safetensors"), DataError);
}

TEST(RunSpecText, RoundTripsAndRefusesTypos) {
  const std::string text = "[data]\ntokens = \"t\"\n[model]\nlayers = 3\nvocab = 50\n[train]\n";
  const RunSpec spec = read_run_spec_text(text, "x.toml", {"train.learning_rate=3e-4"});
  EXPECT_DOUBLE_EQ(spec.learning_rate, 3e-4);
  EXPECT_EQ(to_toml(read_run_spec_text(to_toml(spec), "y.toml")), to_toml(spec));
  EXPECT_THROW(read_run_spec_text(text + "lerning_rate = 1.0\n", "x.toml"), ConfigError);
  EXPECT_THROW(read_run_spec_text(text, "x.toml", {"model.heads=7"}), ConfigError);
  EXPECT_THROW(read_run_spec_text(text, "x.toml", {"model.norm=pree"}), ConfigError);
  EXPECT_THROW(read_run_spec_text(text, "x.toml", {"nonsense"}), ConfigError);
  EXPECT_THROW(read_run_spec_text(text, "x.toml", {"train.steps=0"}), ConfigError);
}

TEST(RunSpecText, EveryFieldHasAKey) {
  const auto tables = describe_run_spec();
  // Of the run's own fields, model, task, schedule and optimiser have keys of their own.
  const std::size_t own = field_count<RunSpec>() - 4 + field_count<Schedule>() +
                          field_count<model::OptimiserSettings>() + field_count<data::TaskSpec>();
  EXPECT_EQ(tables.at(0).keys.size() + tables.at(2).keys.size(), own);
  EXPECT_EQ(tables.at(1).keys.size(), field_count<model::ModelSpec>());
}

/// Ids name the folders of studies. When this fails after adding a key, make it only_when_set with
/// a default of zero, false or empty.
TEST(RunSpecText, IdsStayThoseOfEarlierVersions) {
  const std::string text = "[data]\ntokens = \"t\"\n[model]\nvocab = 50\n[train]\n";
  EXPECT_EQ(run_id(read_run_spec_text(text, "x.toml"), Hash128{}), "43240926f71314e1");
}

TEST(RunSpecText, RunLengthAndBatchCorrection) {
  const std::string text =
      "[data]\ntokens = \"t\"\n[model]\nvocab = 50\ncontext = 128\n"
      "[train]\nsteps = 600\nbatch = 16\nlearning_rate = 0.01\nbase_batch_tokens = 2048\n"
      "base_total_tokens = 204800\nbeta1 = 0.9\nbeta2 = 0.95\nepsilon = 1e-8\n";
  const RunSpec spec = read_run_spec_text(text, "x.toml");
  // The same batch as the base, six times its length: sqrt(1/6) of the learning rate.
  EXPECT_NEAR(spec.corrected_learning_rate(), 0.01 * std::sqrt(1.0 / 6), 1e-12);
  EXPECT_NEAR(spec.corrected_optimiser().epsilon, 1e-8 * std::sqrt(6.0), 1e-15);
  EXPECT_NEAR(1 - spec.corrected_optimiser().beta1, 0.1 / 6, 1e-12);
}

TEST_F(RunTest, CudaRepeatsAndResumesBitForBit) {
  std::string why = "the driver sees no GPU";
  const engine::CudaModule* module = engine::find_cuda_module(&why);
  if (module == nullptr || module->device_count() == 0) GTEST_SKIP() << "no CUDA: " << why;
  for (const char* precision : {"f32", "bf16"}) {
    const std::string type = precision;
    const RunSpec cuda = spec({"train.device=cuda", "train.precision=" + type});
    const RunRecord whole = run(cuda, type + "_whole");
    run(cuda, type + "_again");
    expect_equal_runs(type + "_whole", type + "_again");
    int steps = 0;
    const auto stop_early = [&] { return ++steps == 5; };
    EXPECT_EQ(run(cuda, type + "_stopped", false, {}, stop_early).status, RunStatus::interrupted);
    run(cuda, type + "_stopped", true);
    expect_equal_runs(type + "_whole", type + "_stopped");
    const RunRecord cpu = run(spec({"train.precision=" + type}), type + "_cpu");
    EXPECT_NEAR(whole.final_loss, cpu.final_loss, type == "f32" ? 1e-4 : 2e-2);
  }
}

}  // namespace
}  // namespace fathom::train
