#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/rank_options.h"
#include "run_command.h"
#include "scratch_folder.h"

namespace fathom {
namespace {

TEST(Rank, JsonCarriesEveryPromisedField) {
  const auto exact =
      run_json({"rank", "--layers", "2", "--width", "4", "--heads", "1", "--positions", "4"});
  EXPECT_EQ(exact["schema"], "fathom.rank.v1");
  EXPECT_EQ(exact["rank"], 110);
  EXPECT_EQ(exact["rmax"], 110);
  EXPECT_EQ(exact["status"], "exact");
  EXPECT_EQ(exact["grid"], 110);
  EXPECT_EQ(exact["primes"].size(), 2u);
  EXPECT_EQ(exact["error_probability"], 0);
  EXPECT_GT(exact["seconds"], 0.0);
  EXPECT_EQ(exact["partition"], "0011");
  EXPECT_EQ(exact["output_position"], 3);

  const auto heads =
      run_json({"rank", "--layers", "2", "--width", "4", "--heads", "4", "--positions", "4"});
  EXPECT_EQ(heads["rank"], 85);
  EXPECT_EQ(heads["rmax"], 110);
  EXPECT_EQ(heads["bound"], 85);
  EXPECT_EQ(heads["status"], "exact");

  const auto generic = run_json({"rank", "--layers", "2", "--width", "4", "--positions", "4",
                                 "--partition", "0111", "--output-position", "0"});
  EXPECT_EQ(generic["rank"], 80);
  EXPECT_EQ(generic["rmax"], 90);
  EXPECT_EQ(generic["status"], "generic");
  EXPECT_GT(generic["error_probability"], 0.0);

  const auto capped = run_json({"rank", "--layers", "2", "--width", "4", "--max-grid", "20"});
  EXPECT_EQ(capped["status"], "at least");
  EXPECT_EQ(capped["rank"], 1 + 10 + 20 + 20 + 4);
}

TEST(Rank, AllBalancedShowsWhereThePartitionMatters) {
  const auto causal = run_json({"rank", "--layers", "2", "--width", "2", "--positions", "4",
                                "--mask", "causal", "--all-balanced"});
  ASSERT_EQ(causal["partitions"].size(), 6u);
  for (const auto& entry : causal["partitions"]) {
    const std::string partition = entry["partition"];
    const int expected = partition == "0011" || partition == "1100"   ? 18
                         : partition == "0101" || partition == "1010" ? 37
                                                                      : 26;
    EXPECT_EQ(entry["rank"], expected) << partition;
  }
  EXPECT_EQ(causal["groups"].size(), 3u);
  const auto bidirectional = run_json({"rank", "--layers", "2", "--width", "2", "--positions", "4",
                                       "--all-balanced", "--output-position", "all"});
  EXPECT_EQ(bidirectional["partitions"].size(), 24u);
  EXPECT_EQ(bidirectional["invariant"], true);
}

TEST(Rank, FamiliesPartitionsAndFlags) {
  EXPECT_EQ(run_json({"rank", "--family", "conv", "--width", "3", "--positions", "8", "--partition",
                      "interleaved"})["rank"],
            81);
  EXPECT_EQ(run_json({"rank", "--family", "conv", "--width", "3", "--positions", "8"})["rank"], 3);
  EXPECT_EQ(run_json({"rank", "--family", "conv", "--width", "3", "--positions", "8", "--pooling",
                      "mirror"})["rank"],
            81);
  EXPECT_EQ(run_json({"rank", "--family", "recurrent", "--layers", "1", "--width", "3",
                      "--positions", "6"})["rank"],
            3);
  EXPECT_EQ(run_json({"rank", "--layers", "2", "--width", "3", "--positions", "6", "--partition",
                      "011111", "--output-position", "0"})["rank"],
            39);
  EXPECT_EQ(run_json({"rank", "--layers", "2", "--width", "6", "--embedding-rank", "2"})["rank"],
            18);
  EXPECT_EQ(run_json({"rank", "--layers", "2", "--width", "3", "--residual"})["rank"], 49);
}

TEST(Rank, RefusesInOneLineBeforeWork) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"rank"},
        {"rank", "--layers", "2"},
        {"rank", "--layers", "2", "--width", "4", "--heads", "3"},
        {"rank", "--layers", "2", "--width", "4", "--positions", "5"},
        {"rank", "--layers", "2", "--width", "4", "--positions", "5", "--all-balanced"},
        {"rank", "--layers", "2", "--width", "4", "--positions", "4", "--partition", "012"},
        {"rank", "--layers", "2", "--width", "4", "--positions", "4", "--partition", "0000"},
        {"rank", "--layers", "2", "--width", "4", "--partition", "leftright"},
        {"rank", "--layers", "2", "--width", "4", "--output-position", "9"},
        {"rank", "--layers", "2", "--width", "4", "--embedding-rank", "5"},
        {"rank", "--layers", "3", "--width", "8"},
        {"rank", "--layers", "2", "--width", "8", "--memory", "1MB"},
        {"rank", "--layers", "2", "--width", "4", "--memory", "lots"},
        {"rank", "--layers", "2", "--width", "4", "--mask", "causl"},
        {"rank", "--layers", "2", "--width", "4", "--mask", "causal", "--method", "gram"},
        {"rank", "--layers", "-2", "--width", "4"},
        {"rank", "--layers", "2", "--width", "99999999999999999999"},
        {"rank", "--family", "conv", "--width", "3", "--positions", "6"},
        {"rank", "table", "--layers", "2"},
        {"rank", "table", "--layers", "2", "--widths", "4-2"}}) {
    const CommandResult result = run_command(arguments);
    EXPECT_EQ(result.code, 2) << arguments.back();
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
  const CommandResult hopeless = run_command({"rank", "--layers", "3", "--width", "8"});
  EXPECT_NE(hopeless.err.find("of memory, above the limit"), std::string::npos) << hopeless.err;
}

TEST(RankTable, PrintsResumesAndExports) {
  const ScratchFolder folder;
  const std::string records = folder / "records.jsonl";
  const std::vector<std::string> base{"rank",     "table", "--layers",  "2",
                                      "--widths", "2-4",   "--records", records};
  const CommandResult first = run_command(base);
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(std::count(first.err.begin(), first.err.end(), '\n'), 7);  // one line a setting
  std::vector<std::string> csv = base;
  csv.push_back("--csv");
  const CommandResult second = run_command(csv);
  EXPECT_EQ(second.err, "");  // nothing left to compute
  EXPECT_NE(second.out.find("2,4,2,8,00001111,7,bidirectional,0,,107,exact,110,107"),
            std::string::npos)
      << second.out;
  std::vector<std::string> more = base;
  more[5] = "2-5";
  EXPECT_EQ(run_json(more)["rows"].size(), 9u);
}

TEST(RankForecast, SpeaksOnceEarlyAndOnlyOfLongWork) {
  RankForecast forecast;
  EXPECT_EQ(forecast.look(0.5, 0.5), "");  // too early
  EXPECT_EQ(forecast.look(0.5, 2.0), "");  // 4 s in all
  EXPECT_EQ(forecast.look(0.0, 2.0), "");
  const std::string said = forecast.look(0.05, 2.0);
  EXPECT_EQ(said.find("evaluating takes about 40"), 0u) << said;
  EXPECT_EQ(forecast.look(0.06, 2.4), "");  // said
}

}  // namespace
}  // namespace fathom
