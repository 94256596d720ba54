// What a study says about itself: its end, text read many times, and a study that was moved.
#include "cli/study_end.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "run_command.h"
#include "scratch_folder.h"
#include "study/planted_study.h"
#include "study/repetition.h"

namespace fathom {
namespace {

CommandResult end_of(const study::PlantedStudy& planted, const study::ExecutorResult& runs,
                     bool json) {
  std::ostringstream out, err;
  Session session{out, err, Terminal{}};
  print_study_end(session, study::open_study(planted.folder.path()), {runs, {}}, json);
  return {0, out.str(), err.str()};
}

TEST(StudyEnd, NamesTheBestShapeTheFindingAndTheNextCommand) {
  const study::PlantedStudy planted;
  const std::string text = end_of(planted, {24, 0, false}, false).out;
  // By hand: the planted loss falls with size and, at the largest, with depth.
  EXPECT_NE(text.find("best     12 x "), std::string::npos) << text;
  EXPECT_NE(text.find("decided  "), std::string::npos) << text;
  EXPECT_NE(text.find("fathom study report " + planted.folder.name()), std::string::npos) << text;
  EXPECT_NE(text.find("--law study:" + planted.folder.name()), std::string::npos) << text;
  EXPECT_TRUE(std::filesystem::exists(planted.folder.law()));  // so that the hint works
  const auto json = nlohmann::json::parse(end_of(planted, {24, 0, false}, true).out);
  EXPECT_EQ(json["best"]["layers"], 12);
  EXPECT_FALSE(json["answer"].empty());
}

TEST(StudyEnd, WithoutALawItPointsToTheReasons) {
  std::vector<train::RunRecord> records = study::planted_records();
  std::erase_if(records, [](const train::RunRecord& record) { return record.layers != 2; });
  const study::PlantedStudy planted(records);
  const std::string text = end_of(planted, {6, 0, false}, false).out;
  EXPECT_NE(text.find("best     2 x "), std::string::npos) << text;
  EXPECT_NE(text.find("fathom study fit "), std::string::npos) << text;
  EXPECT_EQ(text.find("--law"), std::string::npos) << text;
}

TEST(StudyEnd, AStoppedStudyClaimsNothing) {
  const study::PlantedStudy planted;
  const std::string text = end_of(planted, {3, 0, true}, false).out;
  EXPECT_EQ(text.find("best"), std::string::npos) << text;
  EXPECT_TRUE(nlohmann::json::parse(end_of(planted, {3, 0, true}, true).out)["best"].is_null());
}

TEST(Repetition, IsSaidPastFourPasses) {
  EXPECT_EQ(study::repetition_note(4'000'000, 1'000'000), "");
  const std::string note = study::repetition_note(100'000'000, 3'000'000);
  EXPECT_NE(note.find("33 times over"), std::string::npos) << note;
  EXPECT_NE(note.find("100M"), std::string::npos) << note;
  EXPECT_NE(note.find("3.00M"), std::string::npos) << note;
  study::PlannedRun shorter, longer;
  shorter.tokens = 10;
  longer.tokens = 100;
  const study::TokenFacts facts{{}, 257, 10};
  EXPECT_NE(longest_repetition({shorter, longer}, facts).find("10 times"), std::string::npos);
  EXPECT_EQ(longest_repetition({shorter}, facts), "");
  EXPECT_EQ(longest_repetition({longer}, {}), "");
}

TEST(StudyRun, SaysHowMuchTextWouldDo) {
  const ScratchFolder folder;
  const CommandResult result = run_command({"study", "run", "--preset", "quick", "--corpus",
                                            folder.write("small.txt", "one line\n"), "--set",
                                            "corpus.tokenizer=bytes", folder / "study"});
  EXPECT_EQ(result.code, 3);
  EXPECT_NE(result.err.find("the text (9 bytes) is 1 document, and about "), std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("--set corpus.documents=lines"), std::string::npos) << result.err;
}

TEST(StudyRun, LeavesNoDirectoryWhenThereIsNoText) {
  const ScratchFolder folder;
  const std::string small = folder.write("small.txt", "one line\n");
  const std::string empty = folder.write("empty.txt", "");
  const std::string missing = folder / "missing.txt";
  for (const std::string& corpus : {small, empty, missing}) {
    const CommandResult result =
        run_command({"study", "run", "--preset", "quick", "--corpus", corpus, folder / "study"});
    EXPECT_EQ(result.code, 3) << result.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "study")) << corpus;
  }
}

TEST(MovedStudy, ARunStillFindsItsTokenizer) {
  const ScratchFolder folder;
  std::string text;
  for (int i = 0; i < 400; ++i) text += "the sea is " + std::to_string(i) + " fathoms deep\n";
  const std::string corpus = folder.write("sea.txt", text);
  const auto study = folder / "study";
  const std::string tokens = study / "tokens";
  ASSERT_EQ(run_command({"data", "prepare", corpus, "-o", tokens, "--tokenizer", "bytes",
                         "--documents", "lines"})
                .code,
            0);
  const std::string spec = folder.write(
      "spec.toml", "[data]\ntokens = \"" + tokens +
                       "\"\neval_tokens = 500\n[model]\nlayers = 1\nwidth = 32\nheads = 1\n"
                       "context = 32\n[train]\nsteps = 500\nbatch = 4\nlearning_rate = 0.003\n");
  const std::string run = study / "runs" / "abc";
  const CommandResult trained = run_command({"train", spec, "--out", run});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_NE(trained.err.find("times over"), std::string::npos) << trained.err;
  std::filesystem::rename(study, folder / "moved");
  const CommandResult generated =
      run_command({"generate", folder / "moved" / "runs" / "abc", "--tokens", "5"});
  EXPECT_EQ(generated.code, 0) << generated.err;
}

TEST(StudyShow, AForeignRecordCannotSpeakToTheTerminal) {
  std::vector<train::RunRecord> records = study::planted_records();
  records[0].status = train::RunStatus::diverged;
  records[0].reason =
      "loss \x1b[2J\x1b]0;title\x07 \xC2\x9B"
      "31m";
  const study::PlantedStudy planted(records);
  const std::string name = planted.folder.name(), id = records[0].id;
  write_file_atomically(planted.folder.run(id).spec(), "# \x1b[31m\n[model]\n");
  for (const std::vector<std::string>& command : {std::vector<std::string>{"study", "status", name},
                                                  {"study", "list", name},
                                                  {"study", "list", name, "--columns", "id,reason"},
                                                  {"study", "show", name, id}}) {
    const CommandResult result = run_command(command);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_NE(result.out.find(id), std::string::npos) << result.out;
    EXPECT_EQ(result.out.find('\x1b'), std::string::npos) << result.out;
    EXPECT_EQ(result.out.find('\x07'), std::string::npos) << result.out;
    EXPECT_EQ(result.out.find("\xC2\x9B"), std::string::npos) << result.out;
  }
}

}  // namespace
}  // namespace fathom
