// Small runs on a small corpus, for tests: a second each.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/files.h"
#include "data/prepare.h"
#include "data/sample_text.h"
#include "data/token_set.h"
#include "scratch_folder.h"
#include "train/run.h"
#include "train/run_spec.h"

namespace fathom::train {

class RunTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string text;
    for (int i = 0; i < 30; ++i) {
      text += "= Article " + std::to_string(i) + " =\n" + data::sample_text(200, 50 + i) + "\n\n";
    }
    data::PrepareRequest request;
    request.sources = {{folder_.write("corpus.txt", text), {}, ""}};
    request.output = folder_ / "tokens";
    request.split = {0.2, 0.2, 0};
    request.tokenizer = {"bytes", 257};
    prepare(request);
    tokens_ = std::make_unique<data::TokenSet>(folder_ / "tokens");
  }

  /// One thread: children of fork() must not need OpenMP's pool.
  RunSpec spec(const std::vector<std::string>& settings = {}) const {
    const std::string text = "[data]\ntokens = \"" + (folder_ / "tokens").string() +
                             "\"\neval_tokens = 512\n"
                             "[model]\nlayers = 2\nwidth = 32\nheads = 2\ncontext = 32\n"
                             "dropout = 0.1\n"
                             "[train]\nsteps = 12\nbatch = 4\naccumulation = 2\n"
                             "learning_rate = 0.003\neval_every = 4\ncheckpoint_every = 3\n";
    return read_run_spec_text(text, "test.toml", settings);
  }

  RunRecord run(const RunSpec& spec, const std::string& name, bool resume = false,
                std::function<void(const RunProgress&)> on_step = {},
                std::function<bool()> stop = {}) {
    RunOptions options;
    options.directory = folder_ / name;
    options.resume = resume;
    options.on_step = std::move(on_step);
    options.stop = std::move(stop);
    return run_training(spec, *tokens_, options);
  }

  std::string file(const std::string& run, const std::string& name) const {
    return read_text_file(folder_ / run / name);
  }

  void expect_equal_runs(const std::string& a, const std::string& b) const {
    EXPECT_EQ(file(a, "metrics.jsonl"), file(b, "metrics.jsonl"));
    EXPECT_TRUE(file(a, "checkpoint/state.safetensors") == file(b, "checkpoint/state.safetensors"));
  }

  /// Runs `body` in a child and returns its wait status.
  static int in_child(const std::function<void()>& body) {
    const pid_t child = fork();
    if (child == 0) {
      try {
        body();
      } catch (const DataError&) {
        _exit(3);
      } catch (...) {
        _exit(70);
      }
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
  }

  ScratchFolder folder_;
  std::unique_ptr<data::TokenSet> tokens_;
};

}  // namespace fathom::train
