// fathom train as a user meets it: a run stopped by Ctrl-C and taken up again.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

#include "run_command.h"
#include "scratch_folder.h"

namespace fathom {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A small corpus, prepared; the folder of its tokens.
std::string prepare_sea(const ScratchFolder& folder) {
  std::string text;
  for (int i = 0; i < 4000; ++i) text += "the sea is " + std::to_string(i * i % 997) + " fathoms\n";
  const auto corpus = folder.write("sea.txt", text);
  const std::string tokens = (folder.path() / "tokens").string();
  const CommandResult prepared = run_command({"data", "prepare", corpus.string(), "-o", tokens,
                                              "--tokenizer", "bytes", "--documents", "lines"});
  EXPECT_EQ(prepared.code, 0) << prepared.err;
  return tokens;
}

TEST(TrainCommand, StoppedByCtrlCItExitsWith130AndGoesOn) {
  const ScratchFolder folder;
  const std::string tokens = prepare_sea(folder);
  const auto spec = folder.write("spec.toml", "[data]\ntokens = \"" + tokens +
                                                  "\"\neval_tokens = 1000\n[model]\nlayers = 1\n"
                                                  "width = 32\nheads = 1\ncontext = 32\n"
                                                  "[train]\nsteps = 2000\nbatch = 4\n"
                                                  "learning_rate = 0.003\n");
  const auto train = [&](const std::string& out, bool resume) {
    std::vector<std::string> words{"train", spec.string(), "--out", (folder.path() / out).string()};
    if (resume) words.emplace_back("--resume");
    return run_command(words);
  };
  const auto metrics = folder.path() / "stopped" / "metrics.jsonl";
  std::thread finger([&] {
    for (int look = 0; look < 30'000; ++look) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      if (std::filesystem::exists(metrics) && std::filesystem::file_size(metrics) >= 2000) {
        kill(getpid(), SIGINT);
        return;
      }
    }
  });
  const CommandResult stopped = train("stopped", false);
  finger.join();
  EXPECT_EQ(stopped.code, 130);
  EXPECT_NE(stopped.err.find("--resume continues"), std::string::npos) << stopped.err;
  ASSERT_EQ(train("stopped", true).code, 0);
  ASSERT_EQ(train("whole", false).code, 0);
  EXPECT_EQ(text_of(metrics), text_of(folder.path() / "whole" / "metrics.jsonl"));
}

/// plan --emit fathom, then train: the way on from a plan.
TEST(TrainCommand, TrainsWhatAPlanEmits) {
  const ScratchFolder folder;
  const std::string tokens = prepare_sea(folder);
  const std::string spec = folder / "run.toml";
  const std::vector<std::string> plan{"plan", "50K", "--vocab", "320", "--context", "32"};
  std::vector<std::string> emit = plan;
  emit.insert(emit.end(), {"--emit", "fathom", "-o", spec});
  ASSERT_EQ(run_command(emit).code, 0);
  const CommandResult trained =
      run_command({"train", spec, "--set", "data.tokens=" + tokens, "--set", "train.steps=4",
                   "--out", folder / "run", "--json"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  std::vector<std::string> count = plan;
  count.emplace_back("--json");
  const auto planned = nlohmann::json::parse(run_command(count).out)["recommendation"];
  const auto record = nlohmann::json::parse(text_of(folder / "run" / "record.json"));
  EXPECT_EQ(record["non_embedding_parameters"], planned["parameters"]["non_embedding"]);
  EXPECT_EQ(record["layers"], planned["layers"]);
  EXPECT_EQ(record["outcome"], "finished");
  EXPECT_LT(record["final_loss"], std::log(320.0));  // better than a guess
}

}  // namespace
}  // namespace fathom
