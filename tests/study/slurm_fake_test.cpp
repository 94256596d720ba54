// The Slurm executor against programs that play Slurm: slow, forgetful, unreachable.
#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>

#include "core/error.h"
#include "study/slurm_executor.h"
#include "study/subprocess.h"
#include "tiny_study.h"

namespace fathom::study {
namespace {

namespace fs = std::filesystem;

/// sbatch runs the task at once; squeue shows an empty queue, as a cached one does.
class FakeSlurm {
 public:
  FakeSlurm() {
    add("sbatch",
        "[ \"$1\" = --version ] && exit 0\n"
        "echo call >> \"$here/sbatch.calls\"\n"
        "if [ -e \"$here/refuse\" ]; then\n"
        "  rm \"$here/refuse\"\n"
        "  echo 'sbatch: error: Batch job submission failed: Unable to contact slurm controller "
        "(connect failure)' >&2\n"
        "  exit 1\n"
        "fi\n"
        "for script; do :; done\n"
        "SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=0 sh \"$script\" >/dev/null 2>&1 </dev/null &\n"
        "echo 7\n");
    add("squeue", "if [ -e \"$here/hang\" ]; then rm \"$here/hang\"; exec sleep 100; fi\n");
    add("scancel", "");
    add("scontrol", "");
    const char* path = std::getenv("PATH");
    old_path_ = path == nullptr ? "" : path;
    setenv("PATH", (folder_.path().string() + ":" + old_path_).c_str(), 1);
  }
  ~FakeSlurm() { setenv("PATH", old_path_.c_str(), 1); }
  FakeSlurm(const FakeSlurm&) = delete;
  FakeSlurm& operator=(const FakeSlurm&) = delete;

  void set(const std::string& switch_name) const { folder_.write(switch_name, ""); }
  bool has(const std::string& switch_name) const { return fs::exists(folder_ / switch_name); }
  std::size_t submissions() const {
    const std::string calls = file_bytes(folder_ / "sbatch.calls");
    return static_cast<std::size_t>(std::count(calls.begin(), calls.end(), '\n'));
  }

 private:
  void add(const std::string& name, const std::string& body) const {
    const auto file = folder_.write(name, "#!/bin/sh\nhere=$(dirname \"$0\")\n" + body);
    fs::permissions(file, fs::perms::owner_all);
  }
  ScratchFolder folder_;
  std::string old_path_;
};

SlurmOptions quick_options() {
  SlurmOptions options;
  options.program = test_program();
  options.runs_per_task = 100;
  options.poll_seconds = 0.1;
  options.answer_seconds = 2;
  return options;
}

TEST(FakeSlurm, WhatTheQueueDoesNotShowYetIsNotSubmittedAgain) {
  const FakeSlurm slurm;
  const TinyStudy tiny;
  const Study study = tiny.begin();
  const ExecutorResult result = run_slurm(study, study.all_runs(), quick_options(), {});
  EXPECT_EQ(result.done, 4u);
  EXPECT_EQ(slurm.submissions(), 1u);
}

TEST(FakeSlurm, TemporaryFilesOfAKilledSubmitterGo) {
  const FakeSlurm slurm;
  const TinyStudy tiny;
  const Study study = tiny.begin();
  const fs::path folder = study.folder.slurm();
  fs::create_directories(folder);
  const std::string gone = std::to_string(1 << 22);  // above the largest process id
  const std::string here = std::to_string(getpid());
  for (const std::string& name : {"a-b.sh." + gone + ".tmp", "a-b.sh." + here + ".tmp",
                                  std::string("a-b.sh.tmp"), std::string("notes.txt")}) {
    std::ofstream(folder / name) << "x";
  }
  EXPECT_EQ(run_slurm(study, study.all_runs(), quick_options(), {}).done, 4u);
  EXPECT_FALSE(fs::exists(folder / ("a-b.sh." + gone + ".tmp")));
  EXPECT_TRUE(fs::exists(folder / ("a-b.sh." + here + ".tmp")));  // somebody writes it
  EXPECT_TRUE(fs::exists(folder / "a-b.sh.tmp"));
  EXPECT_TRUE(fs::exists(folder / "notes.txt"));
}

TEST(FakeSlurm, AControllerThatCannotBeReachedIsWaitedFor) {
  const FakeSlurm slurm;
  slurm.set("refuse");
  const TinyStudy tiny;
  const Study study = tiny.begin();
  std::string notes;
  ExecutorEvents events;
  events.note = [&](const std::string& text) { notes += text + "\n"; };
  EXPECT_EQ(run_slurm(study, study.all_runs(), quick_options(), events).done, 4u);
  EXPECT_EQ(slurm.submissions(), 2u);
  EXPECT_NE(notes.find("Unable to contact slurm controller (connect failure)); waiting"),
            std::string::npos)
      << notes;
}

TEST(FakeSlurm, AStopEndsTheWaitingForAProgramThatHangs) {
  const FakeSlurm slurm;
  slurm.set("hang");
  const TinyStudy tiny;
  const Study study = tiny.begin();
  SlurmOptions options = quick_options();
  options.answer_seconds = 90;
  ExecutorEvents events;
  events.stop = [&] { return !slurm.has("hang"); };  // it hangs now
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(run_slurm(study, study.all_runs(), options, events).stopped);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

TEST(RunProgram, IsEndedWhenItsTimeIsUp) {
  const ProgramResult result = run_program({"sleep", "100"}, {0.2, {}});
  EXPECT_TRUE(result.cut_short);
  EXPECT_EQ(result.code, 128 + 9);
}

}  // namespace
}  // namespace fathom::study
