// The table of claims against the pages, and every committed verdict against its experiment.
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>

#include "core/files.h"
#include "lab/frame/claim.h"
#include "lab/frame/claims_page.h"
#include "lab/frame/runner.h"

namespace fathom::lab {
namespace {

namespace fs = std::filesystem;

const fs::path kDocs = fs::path(FATHOM_SOURCE_DIR) / "docs";

/// A heading's anchor as Markdown readers make it: lower case, spaces to hyphens, no signs.
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char c : heading) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (c == ' ' || c == '-') {
      anchor += '-';
    }
  }
  return anchor;
}

bool has_anchor(const std::string& page, const std::string& anchor) {
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("#")) continue;
    if (anchor_of(line.substr(line.find(' ') + 1)) == anchor) return true;
  }
  return false;
}

TEST(ClaimsPage, IsTheCommittedOne) {
  EXPECT_EQ(read_text_file(kDocs / "claims.md"), claims_page())
      << "fathom lab list --markdown > docs/claims.md";
}

TEST(ClaimsPage, EveryClaimHasAPageThatTellsTheCommand) {
  for (const Claim& claim : claims()) {
    const auto hash = claim.page.find('#');
    const std::string file = claim.page.substr(0, hash);
    ASSERT_TRUE(fs::exists(kDocs / file)) << claim.id;
    const std::string page = read_text_file(kDocs / file);
    EXPECT_NE(page.find("fathom lab run " + claim.id), std::string::npos) << claim.id;
    if (hash != std::string::npos) {
      EXPECT_TRUE(has_anchor(page, claim.page.substr(hash + 1))) << claim.page;
    }
  }
}

TEST(TrainedClaims, FitIntoNinetyMinutesOfAGpuAndFifteenOfTwoCores) {
  double gpu = 0;
  double processor = 0;
  for (const std::string& id : claim_ids(true)) {
    const Claim& claim = find_claim(id);
    EXPECT_GT(claim.gpu_seconds, 0) << id << " was not timed";
    gpu += claim.gpu_seconds;
    processor += claim.quick_seconds;
  }
  EXPECT_LE(gpu, 90 * 60);
  EXPECT_LE(processor, 2 * 15 * 60);
  EXPECT_EQ(find_claim("induction").gpu_cost, "8.00 s on an H200, nine runs at once");
}

class CommittedVerdict : public testing::TestWithParam<std::string> {};

TEST_P(CommittedVerdict, IsWhatTheQuickExperimentSays) {
  const Claim& claim = find_claim(GetParam());
  lab::Setup setup = resolve_setup(find_experiment(claim.id), {}, true);
  setup.time_limit = 3600;
  const LabResult result = run_claim(claim, setup, 2);
  EXPECT_EQ(name_of(result.judgement.verdict), std::string(name_of(claim.finding.verdict)));
  EXPECT_EQ(result.judgement.criteria.size(), claim.criteria.size());
}

// Trained claims take minutes; what they conclude from records is tested in trained_test.cpp.
INSTANTIATE_TEST_SUITE_P(Lab, CommittedVerdict, testing::ValuesIn(claim_ids(false)),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace fathom::lab
