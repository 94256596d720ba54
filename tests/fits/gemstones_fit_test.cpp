// The published Gemstones measurements and fits (data/gemstones*.csv, arXiv 2502.06857) as referee
// of the joint fit.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/csv.h"
#include "core/files.h"
#include "fits/joint_fit.h"
#include "fits/run_points_csv.h"

namespace fathom::fits {
namespace {

constexpr JointForm kFull{true, true, true, true, false};
constexpr JointForm kFullInteracting{true, true, true, true, true};

std::filesystem::path data_file(const char* name) {
  return std::filesystem::path(FATHOM_SOURCE_DIR) / "data" / name;
}

std::vector<RunPoint> cool_down() {
  return read_run_points(data_file("gemstones.csv"), {{{"phase", "cooldown"}}, "total_params"});
}

/// The rows a published set was fitted to; steps tell token counts apart.
std::vector<RunPoint> rows_of(const std::string& set, const std::string& params) {
  const bool cool = set == "cool_end";
  const bool ablation = set == "lr_ablation_hot";
  PointSelection selection{{{"phase", cool ? "cooldown" : "stable"}}, params};
  if (!cool) selection.where.push_back({"lr_variant", ablation ? "ablation" : "main"});
  if (set.ends_with("512x")) selection.where.push_back({"width", "512"});
  std::vector<RunPoint> points = read_run_points(data_file("gemstones.csv"), selection);
  constexpr double kBatchTokens = 4194304;
  if (set == "hot") {
    std::erase_if(points, [](const RunPoint& p) { return p.tokens > 23850.5 * kBatchTokens; });
  }
  if (set == "hot_120b+_only") {
    std::erase_if(points, [](const RunPoint& p) { return p.tokens < 28619.5 * kBatchTokens; });
  }
  return points;
}

TEST(GemstonesFit, PublishedObjectivesToTheirLastDigit) {
  const CsvTable fits(read_text_file(data_file("gemstones_fits.csv")), "gemstones_fits.csv");
  ASSERT_EQ(fits.size(), 32u);
  for (std::size_t row = 0; row < fits.size(); ++row) {
    const std::string name = fits.cell(row, "form");
    const JointForm form{name.find('w') != std::string::npos, name.find('L') != std::string::npos,
                         name.find('P') != std::string::npos, name.find('T') != std::string::npos,
                         false};
    const auto points = rows_of(fits.cell(row, "set"), fits.cell(row, "params_count"));
    ASSERT_EQ(static_cast<double>(points.size()), fits.number(row, "rows")) << row;
    Eigen::VectorXd coefficients(form.size());
    Eigen::Index next = 0;
    for (const std::string& term : form.terms()) {
      coefficients[next++] = fits.number(row, "lncoef_" + term);
      coefficients[next++] = fits.number(row, "exp_" + term);
    }
    coefficients[next] = fits.number(row, "lnE");
    const double objective =
        JointObjective(form, points).value(coefficients, fits.number(row, "huber_delta"));
    // Printed to ten decimals.
    EXPECT_NEAR(objective, fits.number(row, "objective_published"), 1e-10) << row;
  }
}

TEST(GemstonesFit, OwnCoolDownFitIsNoWorseThanThePublished) {
  const auto points = cool_down();
  int no_worse = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    JointOptions options;
    options.delta = 1e-4;
    options.seed = seed;
    std::string reason;
    const auto fit = fit_joint(points, kFull, options, reason);
    ASSERT_TRUE(fit) << reason;
    EXPECT_TRUE(fit->law().physical());
    no_worse += fit->objective <= 9.00742e-05;
  }
  EXPECT_GE(no_worse, 3);
}

TEST(GemstonesFit, PredictsTheThreeLargestShapes) {
  const auto points = cool_down();
  JointOptions options;
  options.delta = 1e-4;
  std::string reason;
  auto fit = fit_joint(points, kFull, options, reason);
  ASSERT_TRUE(fit) << reason;
  HeldOutShapes(points, options, 3, 50e9).judge(*fit);
  ASSERT_TRUE(fit->holdout_error);
  EXPECT_EQ(fit->holdout_shapes, 3u);
  EXPECT_GT(fit->holdout_runs, 10u);
  EXPECT_LT(*fit->holdout_error, 0.005);
}

// The additive law has one best depth at every token count; the interaction lets it grow.
TEST(GemstonesFit, DataPreferTheInteraction) {
  const auto points = cool_down();
  JointOptions options;
  options.delta = 1e-4;
  std::string reason;
  const auto plain = fit_joint(points, kFull, options, reason);
  const auto crossed = fit_joint(points, kFullInteracting, options, reason);
  ASSERT_TRUE(plain && crossed) << reason;
  EXPECT_LT(crossed->aic, plain->aic);
  EXPECT_GT(crossed->law().interaction(), 0);
}

}  // namespace
}  // namespace fathom::fits
