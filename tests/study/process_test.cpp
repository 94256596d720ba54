// The program under limits and with odd standard streams: one line, a documented exit code.
#include <gtest/gtest.h>

#include "study/subprocess.h"
#include "tiny_study.h"
#include "train/metrics_file.h"

namespace fathom::study {
namespace {

namespace fs = std::filesystem;

/// A trained study, and what a shell makes of the program in front of `arguments`.
class ProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    run_all(study_);
    spec_ = study_.folder.run(study_.runs[0].id).spec().string();
  }
  ProgramResult shell(const std::string& before, const std::string& arguments) const {
    return run_program(
        {"bash", "-c", before + " exec " + test_program().string() + " " + arguments}, {100, {}});
  }
  std::string train(const std::string& name) const {
    return "train " + spec_ + " --out " + (tiny_.folder / name).string();
  }

  TinyStudy tiny_;
  Study study_ = tiny_.begin();
  std::string spec_;
};

TEST_F(ProcessTest, ClosedStreamsDoNotBecomeDataFiles) {
  EXPECT_EQ(shell("", train("a") + " <&- 2>&-").code, 0);
  const auto metrics = tiny_.folder / "a/metrics.jsonl";
  EXPECT_TRUE(train::damaged_metrics(metrics, 0).empty());
  EXPECT_EQ(file_bytes(metrics), file_bytes(study_.folder.run(study_.runs[0].id).metrics()));
  EXPECT_NE(shell("", "plan 1B >&-").code, 0);  // the result went nowhere
}

TEST_F(ProcessTest, AFileSizeLimitIsAnErrorAndNoSignal) {
  const ProgramResult result = shell("ulimit -f 8;", train("b"));
  EXPECT_EQ(result.code, 3) << result.err;
  EXPECT_NE(result.err.find("File too large"), std::string::npos) << result.err;
  EXPECT_EQ(shell("", train("b") + " --resume").code, 0);
}

TEST_F(ProcessTest, ALimitOfMemoryEndsItSoon) {
  for (const char* limit : {"110000", "120000", "130000", "160000", "220000", "400000"}) {
    const ProgramResult result = shell(std::string("ulimit -v ") + limit + ";", "plan 1B");
    EXPECT_FALSE(result.cut_short) << limit;
    // 127: the loader has no room for a library.
    EXPECT_TRUE(result.code == 0 || result.code == 4 || result.code == 127)
        << limit << ": " << result.code << " " << result.err;
  }
}

TEST_F(ProcessTest, FewDescriptorsAreAnErrorAndTheNextCallGoesOn) {
  const std::string whole = file_bytes(study_.folder.run(study_.runs[0].id).metrics());
  for (const char* limit : {"6", "9", "12"}) {
    const std::string name = std::string("few") + limit;
    const ProgramResult result = shell(std::string("ulimit -n ") + limit + ";", train(name));
    // 127: the loader found no descriptor for a library.
    EXPECT_TRUE(result.code == 0 || result.code == 3 || result.code == 127)
        << limit << ": " << result.code << " " << result.err;
    if (result.code == 3) {
      EXPECT_NE(result.err.find("Too many open files"), std::string::npos) << result.err;
    }
    EXPECT_EQ(shell("", train(name) + (fs::exists(tiny_.folder / name) ? " --resume" : "")).code,
              0);
    EXPECT_EQ(file_bytes(tiny_.folder / (name + "/metrics.jsonl")), whole) << limit;
  }
}

TEST_F(ProcessTest, NoHomeIsNeeded) {
  const std::string without = "unset HOME XDG_CACHE_HOME XDG_CONFIG_HOME;";
  EXPECT_EQ(shell(without, train("homeless")).code, 0);
  EXPECT_EQ(file_bytes(tiny_.folder / "homeless/metrics.jsonl"),
            file_bytes(study_.folder.run(study_.runs[0].id).metrics()));
  EXPECT_EQ(shell(without, "plan 1B").code, 0);
  EXPECT_EQ(shell("export HOME=/proc/none XDG_CACHE_HOME=/proc/none;", "plan 1B").code, 0);
}

TEST_F(ProcessTest, ATemporaryFolderThatIsNotThereIsNamed) {
  const ProgramResult result = shell("export TMPDIR=/proc/none;", "lab run corollary-1 --quick");
  EXPECT_EQ(result.code, 3);
  EXPECT_NE(result.err.find("/proc/none: cannot make a temporary folder"), std::string::npos)
      << result.err;
}

// rows x columns of a config are not allocated before the tensor's shape was looked at: 1.1 GB
// here.
TEST_F(ProcessTest, AConfigOfAbsurdSizeTakesNoMemory) {
  const std::string run = study_.folder.run(study_.runs[0].id).path().string();
  const std::string model = (tiny_.folder / "hf").string();
  ASSERT_EQ(shell("", "export " + run + " --format hf-gpt2 -o " + model).code, 0);
  std::string config = file_bytes(model + "/config.json");
  const std::size_t at = config.find("\"vocab_size\":");
  ASSERT_NE(at, std::string::npos);
  config.replace(at, config.find_first_of(",}", at) - at, "\"vocab_size\": 16777216");
  std::ofstream(model + "/config.json") << config;
  const ProgramResult result =
      shell("ulimit -v 1000000;", "import " + model + " -o " + (tiny_.folder / "in").string());
  EXPECT_EQ(result.code, 3) << result.err;
}

TEST_F(ProcessTest, ATerminalIsNotGivenWhatAPathHolds) {
  const ProgramResult result = shell("", "study status $'no\\x1b[31m\\nsuch'");
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(result.err.find('\x1b'), std::string::npos);
}

TEST_F(ProcessTest, FolderThatCannotBeMadeIsAnErrorOfData) {
  const std::string run = study_.folder.run(study_.runs[0].id).path().string();
  const std::string blocked = tiny_.corpus.string() + "/x";
  for (const std::string& arguments :
       {"export " + run + " --format hf-gpt2 -o " + blocked, "import " + run + " -o " + blocked}) {
    const ProgramResult result = shell("", arguments);
    EXPECT_EQ(result.code, 3) << result.err;
  }
}

}  // namespace
}  // namespace fathom::study
