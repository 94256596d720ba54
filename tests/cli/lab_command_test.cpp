// fathom lab as a user meets it: promised JSON fields, one-line refusals, resumption.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "run_command.h"
#include "scratch_folder.h"

namespace fathom {
namespace {

void expect_refused(const std::vector<std::string>& arguments, int code,
                    const std::string& message) {
  const CommandResult result = run_command(arguments);
  EXPECT_EQ(result.code, code) << result.out;
  EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_TRUE(result.out.empty());
}

TEST(Lab, ListShowsEveryClaimAtOnce) {
  const CommandResult text = run_command({"lab", "list"});
  EXPECT_EQ(text.code, 0);
  EXPECT_NE(text.out.find("rank-collapse"), std::string::npos);
  const auto json = run_json({"lab", "list"});
  EXPECT_EQ(json["schema"], "fathom.lab_list.v1");
  EXPECT_GE(json["claims"].size(), 20u);
  for (const auto& claim : json["claims"]) {
    for (const char* key : {"id", "source", "statement", "published", "experiment", "kind"}) {
      EXPECT_TRUE(claim[key].is_string()) << claim["id"] << key;
    }
    EXPECT_FALSE(claim["criteria"].empty());
    EXPECT_TRUE(claim["finding"]["verdict"].is_string());
  }
}

TEST(Lab, ShowPrintsTheCriterion) {
  const CommandResult text = run_command({"lab", "show", "rank-collapse"});
  EXPECT_NE(text.out.find("2.7 to 3.6"), std::string::npos);
  EXPECT_NE(text.out.find("2103.03404"), std::string::npos);
  const auto json = run_json({"lab", "show", "k-hop"});
  EXPECT_EQ(json["id"], "k-hop");
  EXPECT_EQ(json["criteria"][0]["high"], 0);
}

TEST(Lab, RankCollapseHasItsFields) {
  const auto json =
      run_json({"lab", "run", "rank-collapse", "--tokens", "6", "--width", "8", "--heads", "2",
                "--scale", "1", "--mask", "causal", "--layers", "4", "--seeds", "5"});
  EXPECT_EQ(json["setup"]["mask"], "causal");
  ASSERT_EQ(json["log10_rho"].size(), 5u);
  for (std::size_t l = 0; l <= 4; ++l) {
    EXPECT_EQ(json["log10_rho"][l]["layer"], l);
    EXPECT_LE(json["log10_rho"][l]["q25"], json["log10_rho"][l]["median"]);
    EXPECT_LE(json["log10_rho"][l]["median"], json["log10_rho"][l]["q75"]);
  }
  EXPECT_TRUE(json["exponent"].contains("count"));
  EXPECT_TRUE(json["decades_per_layer"]["median"].is_number());
  EXPECT_EQ(json["own_setup"], true);
}

TEST(Lab, HardAttentionHasItsFields) {
  const auto json = run_json({"lab", "run", "hard-attention", "--regex", "(ab)*", "--alphabet",
                              "ab", "--length", "6", "--logic", "since"});
  EXPECT_EQ(json["depths"], nlohmann::json({1, 1, 2, 2, 2, 2}));
  EXPECT_EQ(json["star_free"], true);
  EXPECT_EQ(json["monoid_size"], 6);
  EXPECT_EQ(json["witness"]["in"], "ab");
  EXPECT_EQ(json["witness"]["out"], "aab");
  EXPECT_EQ(json["witness"]["depth"], 1);
  const auto parity = run_json(
      {"lab", "run", "hard-attention", "--regex", "(aa)*", "--length", "8", "--logic", "since"});
  EXPECT_TRUE(parity["depths"][7].is_null());
  EXPECT_EQ(parity["star_free"], false);
  EXPECT_EQ(parity["witness"]["depth"], 6);
}

TEST(Lab, ADfaFileIsALanguageToo) {
  const ScratchFolder folder;
  std::ofstream(folder / "parity.toml")
      << "alphabet = \"ab\"\nstart = \"even\"\naccept = [\"even\"]\n[transitions]\n"
         "even = { a = \"odd\", b = \"even\" }\nodd = { a = \"even\", b = \"odd\" }\n";
  const auto json = run_json({"lab", "run", "hard-attention", "--dfa",
                              (folder / "parity.toml").string(), "--length", "5"});
  EXPECT_EQ(json["star_free"], false);
  EXPECT_EQ(json["depths"], nlohmann::json({1, 2, 3, 4, 5}));
}

TEST(Lab, WrongRequestsGetOneLineBeforehand) {
  const auto hard = [](std::vector<std::string> more) {
    std::vector<std::string> arguments{"lab", "run", "hard-attention"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  expect_refused(hard({"--regex", "(ab"}), 2, "a '(' without ')'");
  expect_refused(hard({"--regex", "ab", "--alphabet", "a"}), 2, "not in the alphabet");
  expect_refused(hard({"--regex", "(ab)*", "--length", "60"}), 2, "would take about");
  expect_refused(hard({"--regex", "(ab)*", "--length", "30", "--time-limit", "1e9"}), 2,
                 "of memory");
  expect_refused(hard({"--length", "5"}), 2, "or --dfa FILE");
  expect_refused(hard({"--dfa", "/nowhere/x.toml"}), 3, "/nowhere/x.toml");
  expect_refused(hard({"--regex", "\\d+"}), 2, "d is no sign");
  expect_refused({"lab", "run", "recurrent-rank", "--positions", "5"}, 2, "must be even");
  expect_refused({"lab", "run", "partition-invariance", "--positions", "5"}, 2, "must be even");
  expect_refused({"lab", "run", "convnet-rank", "--positions", "6"}, 2, "must be a power of two");
  expect_refused({"lab", "run", "theorem-2-upper", "--layers", "9"}, 2,
                 "both --layers and --width");
  expect_refused({"lab", "run", "hard-attention", "--regex", "a", "--dfa", "x.toml"}, 2,
                 "name one language");
  expect_refused({"lab", "run", "heads", "--width", "4096"}, 2, "between 1 and 2048");
  expect_refused({"lab", "run", "rank-collapse", "--tokens", "99999999999999999999"}, 2,
                 "must lie between 2 and 65536");
  expect_refused({"lab", "run", "rank-collapse", "--heads", "3"}, 2, "must divide");
  expect_refused({"lab", "run", "rank-collapse", "--tokens", "1"}, 2, "between 2 and");
  expect_refused({"lab", "run", "rank-collapse", "--width", "1", "--heads", "1", "--norm", "layer"},
                 2, "one number has no variance");
  expect_refused({"lab", "run", "rank-collapse", "--tokens", "4096", "--width", "4096"}, 2,
                 "would take about");
  expect_refused({"lab", "run", "rank-collapse", "path-lengths", "--tokens", "8"}, 2,
                 "belongs to rank-collapse alone");
  expect_refused({"lab", "run", "rank-colapse"}, 2, "Did you mean 'rank-collapse'");
  expect_refused({"lab", "run", "path-lengths", "all"}, 2, "no claim 'all'");
  expect_refused({"lab", "run", "connectivity", "--vertices", "7"}, 2, "must be even");
  expect_refused({"lab", "run", "softmax-hull", "--weights", "2,x"}, 2, "'x' is not a number");
  expect_refused({"lab", "run", "low-rank-bottleneck", "--tokens", "8", "--head-size", "9"}, 2,
                 "at most the 8 tokens");
  expect_refused({"lab", "run", "partial-width", "--slice", "4", "--width", "2"}, 2,
                 "cannot be read in slices");
  expect_refused({"lab", "run", "theorem-1", "--layers", "2"}, 2, "both --layers and --width");
  expect_refused({"lab", "run", "theorem-1", "--layers", "3", "--width", "30"}, 2,
                 "L = 3, d = 30, H = 1 and 60 positions would take about");
  expect_refused(
      {"lab", "run", "convnet-rank", "--positions", "64", "--channels", "8", "--inputs", "8"}, 2,
      "64 positions would take about");
  expect_refused(
      {"lab", "run", "recurrent-rank", "--positions", "64", "--channels", "64", "--inputs", "64"},
      2, "would take about");
  expect_refused({"lab", "show", "nothing"}, 2, "no claim 'nothing'");
  expect_refused({"lab", "list", "/nowhere"}, 3, "holds no results");
  expect_refused({"lab", "report", "/nowhere"}, 3, "holds no results");
}

TEST(Lab, ARunIsKeptResumedAndListed) {
  const ScratchFolder folder;
  const std::string out = (folder / "lab").string();
  const auto first = run_json(
      {"lab", "run", "path-lengths", "softmax-hull", "--quick", "--seeds", "2", "--out", out});
  EXPECT_EQ(first["schema"], "fathom.lab_run.v1");
  ASSERT_EQ(first["results"].size(), 2u);
  EXPECT_EQ(first["results"][0]["resumed"], 0);
  auto second = run_json({"lab", "run", "path-lengths", "--quick", "--seeds", "2", "--out", out});
  EXPECT_EQ(second["resumed"], second["parts"]);
  auto before = first["results"][0];
  for (auto* document : {&before, &second}) {
    document->erase("seconds");
    document->erase("resumed");
  }
  EXPECT_EQ(before, second);
  const auto page = run_json({"lab", "report", out});
  EXPECT_EQ(page["schema"], "fathom.lab_report.v1");
  EXPECT_EQ(page["path"], out + "/report.html");
  EXPECT_EQ(page["bytes"], std::filesystem::file_size(out + "/report.html"));
  const CommandResult list = run_command({"lab", "list", out});
  EXPECT_NE(list.out.find("your run"), std::string::npos);
}

TEST(Lab, AClaimShowsWhatWouldDecideItAndAQuestionToAsk) {
  const auto json = run_json({"lab", "show", "connectivity"});
  EXPECT_NE(json["undecided"].get<std::string>().find("a proof of the conjecture"),
            std::string::npos);
  EXPECT_EQ(json["ask"], "--vertices 200");
  const CommandResult shown = run_command({"lab", "show", "connectivity"});
  EXPECT_NE(shown.out.find("fathom lab run connectivity --vertices 200"), std::string::npos);
  const CommandResult help = run_command({"lab", "run", "connectivity", "--help"});
  EXPECT_NE(help.out.find("fathom lab run connectivity --vertices 200"), std::string::npos);
}

TEST(Lab, ALanguageOfOnesOwnIsNoVerdictOnTheClaim) {
  const CommandResult result =
      run_command({"lab", "run", "hard-attention", "--regex", "(ab)*", "--length", "4"});
  EXPECT_NE(result.out.find("no criterion of the claim applies"), std::string::npos);
  EXPECT_NE(result.out.find("ab in, aab out at depth 1"), std::string::npos);
}

TEST(Lab, RanksThatNothingForetellsStopAtATenthOfTheLimit) {
  const auto json = run_json({"lab", "run", "recurrent-rank", "--layers", "3", "--positions", "10",
                              "--time-limit", "1", "--threads", "1"});
  EXPECT_EQ(json["tables"][0]["rows"][0][4].get<std::string>().find("at least "), 0u);
}

TEST(Lab, HelpListsWhatAClaimTakes) {
  const auto help = [](const char* claim) {
    return run_command({"lab", "run", claim, "--help"}).out;
  };
  const auto takes = [](const std::string& text, const char* option) {
    return text.find(option) != std::string::npos;
  };
  const std::string exact = help("three-layer-defect"), drawn = help("rank-collapse"),
                    engine = help("k-hop"), trained = help("two-regimes");
  EXPECT_FALSE(takes(exact, "--seeds") || takes(exact, "--device") || takes(exact, "--executor"));
  EXPECT_FALSE(takes(exact, "--partition"));
  EXPECT_TRUE(takes(exact, "--threads") && takes(exact, "--out"));
  EXPECT_TRUE(takes(drawn, "--seeds"));
  EXPECT_FALSE(takes(drawn, "--device"));
  EXPECT_TRUE(takes(engine, "--device"));
  EXPECT_FALSE(takes(engine, "--executor"));
  EXPECT_TRUE(takes(trained, "--device") && takes(trained, "--executor"));
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--seeds", "3"}, {"--device", "cuda"}, {"--executor", "slurm"}}) {
    std::vector<std::string> words{"lab", "run", "three-layer-defect"};
    words.insert(words.end(), more.begin(), more.end());
    const CommandResult refused = run_command(words);
    EXPECT_EQ(refused.code, 2);
    EXPECT_NE(refused.err.find(more[0]), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("does not apply to three-layer-defect"), std::string::npos)
        << refused.err;
  }
}

TEST(Lab, EveryExperimentHasHelp) {
  const CommandResult help = run_command({"lab", "run", "rank-collapse", "--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* option : {"--tokens", "--width", "--heads", "--scale", "--mask", "--skip",
                             "--norm", "--mlp", "--layers", "--seeds", "--quick", "--out"}) {
    EXPECT_NE(help.out.find(option), std::string::npos) << option;
  }
}

}  // namespace
}  // namespace fathom
