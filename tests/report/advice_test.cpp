// What the report tells its reader to do.
#include "report/advice.h"

#include <gtest/gtest.h>

#include "study/fit.h"
#include "study/planted_study.h"
#include "study/repetition.h"

namespace fathom::report {
namespace {

std::vector<study::RunRow> planted_rows() {
  std::vector<study::RunRow> rows;
  for (const train::RunRecord& record : study::planted_records()) {
    rows.push_back(study::row_of(record));
  }
  return rows;
}

bool tells(const std::vector<Advice>& advice, const std::string& part) {
  return std::any_of(advice.begin(), advice.end(),
                     [&](const Advice& each) { return each.text.find(part) != std::string::npos; });
}

TEST(Advice, OfAFitNamesTheDepthToTakeFirst) {
  const auto rows = planted_rows();
  const auto fit = study::fit_runs(rows);
  const auto advice = advise({"my-study", rows, fit});
  ASSERT_FALSE(advice.empty());
  EXPECT_TRUE(advice[0].text.starts_with("At ")) << advice[0].text;
  EXPECT_NE(advice[0].text.find("layers"), std::string::npos);
  EXPECT_FALSE(tells(advice, "not done"));
  EXPECT_FALSE(tells(advice, "diverged"));
}

TEST(Advice, WithoutAFitNamesTheBestRunAndHowToGoOn) {
  std::vector<study::RunRow> rows = planted_rows();
  rows[0].status = study::RunStatus::pending;
  rows[1].status = study::RunStatus::diverged;
  rows[0].final_loss = rows[1].final_loss = NAN;
  const auto advice = advise({"my-study", rows, {}});
  EXPECT_TRUE(tells(advice, "has the lowest loss"));
  EXPECT_TRUE(tells(advice, "1 of 24 runs are not done"));
  EXPECT_TRUE(tells(advice, "1 of 24 runs diverged"));
  const auto go_on = std::find_if(advice.begin(), advice.end(),
                                  [](const Advice& each) { return !each.command.empty(); });
  ASSERT_NE(go_on, advice.end());
  EXPECT_EQ(go_on->command, "fathom study run my-study");
}

TEST(Advice, SaysWhenTheTextWasReadTooOften) {
  const auto rows = planted_rows();  // 20 M tokens each
  EXPECT_TRUE(tells(advise({"", rows, {}, 1'000'000}), "20 times over"));
  EXPECT_FALSE(tells(advise({"", rows, {}, 5'000'000}), "times over"));  // four times
  EXPECT_FALSE(tells(advise({"", rows, {}}), "times over"));             // not known
}

TEST(Repetition, IsSaidBeyondFourPasses) {
  EXPECT_EQ(study::repetition_note(400, 100), "");
  EXPECT_NE(study::repetition_note(401, 100), "");
  EXPECT_NE(study::repetition_note(100'000'000, 3'000'000).find("33 times"), std::string::npos);
}

}  // namespace
}  // namespace fathom::report
