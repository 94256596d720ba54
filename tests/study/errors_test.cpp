// What a user sees when something is wrong: one clear line, the right exit code, nothing lost.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/files.h"
#include "engine/device.h"
#include "study/run_state.h"
#include "study/subprocess.h"
#include "tiny_study.h"

namespace fathom::study {
namespace {

namespace fs = std::filesystem;

class StudyErrors : public testing::Test {
 protected:
  ProgramResult fathom(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), test_program().string());
    return run_program(arguments);
  }
  ProgramResult run(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"study", "run", spec_, tiny_.directory.string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return fathom(arguments);
  }
  /// The last line of what it said is `says`, as the only complaint.
  static void expect_complaint(const ProgramResult& result, int code, const std::string& says) {
    EXPECT_EQ(result.code, code) << result.err;
    const std::size_t at = result.err.find("fathom: ");
    ASSERT_NE(at, std::string::npos) << result.err;
    EXPECT_NE(result.err.find(says, at), std::string::npos) << result.err;
    EXPECT_EQ(
        std::count(result.err.begin() + static_cast<std::ptrdiff_t>(at), result.err.end(), '\n'), 1)
        << result.err;
  }

  TinyStudy tiny_;
  std::string spec_ = tiny_.folder.write("tiny.toml", tiny_spec(tiny_.corpus));
};

TEST_F(StudyErrors, WrongSpecsLeaveNoDirectory) {
  expect_complaint(
      fathom({"study", "run", tiny_.folder.write("b.toml", "[grid\n"), tiny_.directory}), 2,
      "b.toml:1");
  expect_complaint(run({"--set", "grid.kind=leader"}), 2, "Did you mean 'ladder'");
  expect_complaint(fathom({"study", "run", tiny_.folder / "none.toml", tiny_.directory}), 3,
                   "no such file");
  expect_complaint(fathom({"study", "run", tiny_.directory}), 3, "no study here");
  expect_complaint(fathom({"study", "status", tiny_.directory}), 3, "no study here");
  expect_complaint(fathom({"study", "run", "--preset", "quik", tiny_.directory}), 2,
                   "Did you mean 'quick'");
  expect_complaint(fathom({"study", "run", "--preset", "levine", tiny_.directory}), 2, "--corpus");
  EXPECT_FALSE(fs::exists(tiny_.directory));
}

TEST_F(StudyErrors, CorporaAndDevices) {
  expect_complaint(run({"--corpus", tiny_.folder / "gone.txt"}), 3, "no such file");
  expect_complaint(run({"--corpus", tiny_.folder.write("empty.txt", "")}), 3, "empty");
  if (!engine::find_cuda_device()) {
    expect_complaint(run({"--set", "run.device=cuda"}), 4, "no CUDA device");
  }
  ASSERT_EQ(run().code, 0);
  tiny_.folder.write("corpus.txt", tiny_corpus() + "more");
  expect_complaint(run(), 3, "the corpus has changed");
  expect_complaint(fathom({"study", "run", tiny_.directory}), 3, "the corpus has changed");
  EXPECT_EQ(fathom({"study", "list", tiny_.directory}).code, 0);
}

TEST_F(StudyErrors, ADirectoryThatCannotBe) {
  tiny_.folder.write("file", "in the way");
  expect_complaint(fathom({"study", "run", spec_, tiny_.folder / "file" / "study"}), 3,
                   "cannot create this folder");
}

TEST_F(StudyErrors, AFullDiskLosesNothing) {
  // No file may grow beyond 12 KiB: enough for the lock, too little for tokens.
  const std::string limited = "trap '' XFSZ; ulimit -f 12; exec " + test_program().string() +
                              " study run " + spec_ + " " + tiny_.directory.string();
  expect_complaint(run_program({"bash", "-c", limited}), 3, "");
  EXPECT_EQ(run().code, 0);
  // Records stay when a longer study meets the limit.
  const std::string longer = limited + " --set budget.tokens=7680";
  EXPECT_NE(run_program({"bash", "-c", longer}).code, 0);
  const ProgramResult ended = run({"--set", "budget.tokens=7680"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  std::size_t records = 0;
  for (const auto& run : fs::directory_iterator(tiny_.directory / "runs")) {
    records += read_run_state(StudyRunFolder(run.path())).record.has_value();
  }
  EXPECT_EQ(records, 8u);
}

TEST_F(StudyErrors, TwoCommandsAtOnceAndAStop) {
  const std::vector<std::string> longer{"--set", "budget.tokens=400000"};
  const pid_t first = fork();
  if (first == 0) {
    run(longer);
    _exit(0);
  }
  const fs::path lock = StudyFolder(tiny_.directory).lock();
  for (int i = 0; i < 500 && !fs::exists(tiny_.directory / "runs"); ++i) usleep(20'000);
  ASSERT_TRUE(FileLock::holder(lock));
  expect_complaint(run(longer), 2, "another command is working on this study");
  EXPECT_EQ(fathom({"study", "status", tiny_.directory}).code, 0);
  const ProgramResult stopped = fathom({"study", "stop", tiny_.directory});
  EXPECT_EQ(stopped.code, 0) << stopped.err;
  waitpid(first, nullptr, 0);
  EXPECT_FALSE(FileLock::holder(lock));
  expect_complaint(fathom({"study", "stop", tiny_.directory}), 2,
                   "no command is working on this study");
  const auto status =
      nlohmann::json::parse(fathom({"study", "status", tiny_.directory, "--json"}).out);
  EXPECT_EQ(status["running"], 0);
  EXPECT_LT(status["finished"], 4);
  EXPECT_EQ(status["failed"], 0);
}

TEST_F(StudyErrors, FailedRunsAreToldInOneLine) {
  const Study study = tiny_.begin();
  tiny_.folder.write("study/runs/" + study.runs[0].id + "/spec.toml", "[model]\nlayers = 0\n");
  expect_complaint(run(), 3, "1 of 4 runs failed");
  const ProgramResult status = fathom({"study", "status", tiny_.directory});
  EXPECT_NE(status.out.find("failed: "), std::string::npos) << status.out;
}

TEST_F(StudyErrors, LookingAtAStudy) {
  ASSERT_EQ(run().code, 0);
  const std::string directory = tiny_.directory;
  const auto plan =
      nlohmann::json::parse(fathom({"study", "plan", directory, "--no-timing", "--json"}).out);
  const std::string id = plan["runs"][0]["id"];
  EXPECT_EQ(id.size(), 16u);
  const auto shown =
      nlohmann::json::parse(fathom({"study", "show", directory, id.substr(0, 8), "--json"}).out);
  EXPECT_EQ(shown["run"]["id"], id);
  EXPECT_EQ(shown["curve"].size(), 3u);
  expect_complaint(fathom({"study", "show", directory, ""}), 2, "4 runs");
  const ProgramResult listed =
      fathom({"study", "list", directory, "--where", "layers=2", "--order", "loss", "--json"});
  EXPECT_EQ(nlohmann::json::parse(listed.out)["runs"].size(), 2u);
  expect_complaint(fathom({"study", "list", directory, "--where", "nonsense"}), 2, "nonsense");
  for (const char* format : {"csv", "json", "tensorboard", "report"}) {
    EXPECT_EQ(fathom({"study", "export", directory, "--format", format}).code, 0) << format;
  }
  fs::remove(tiny_.directory / "study.db");
  const auto again = nlohmann::json::parse(fathom({"study", "reindex", directory, "--json"}).out);
  EXPECT_EQ(again["points"], 4);
  EXPECT_EQ(fathom({"study", "init", "quick", "-o", tiny_.folder / "q.toml"}).code, 0);
  expect_complaint(fathom({"study", "init", "quick", "-o", tiny_.folder / "q.toml"}), 2, "exists");
}

}  // namespace
}  // namespace fathom::study
