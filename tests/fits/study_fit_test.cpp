#include "fits/study_fit.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "fits/planted.h"
#include "fits/statistics.h"
#include "fits/study_law.h"

namespace fathom::fits {
namespace {

FitOptions quick() {
  FitOptions options;
  options.replicates = 300;
  options.joint_replicates = 40;
  options.joint.starts = 20;
  return options;
}

TEST(Statistics, StudentQuantilesOfTheTables) {
  EXPECT_NEAR(student_quantile(0.975, 1), 12.7062, 1e-4);
  EXPECT_NEAR(student_quantile(0.975, 5), 2.57058, 1e-5);
  EXPECT_NEAR(student_quantile(0.95, 30), 1.69726, 1e-5);
  EXPECT_NEAR(student_quantile(0.975, 1e7), 1.95996, 1e-5);
  EXPECT_NEAR(student_cdf(-student_quantile(0.9, 7), 7), 0.1, 1e-10);
  EXPECT_EQ(quantile({3, 1, 2}, 0.5), 2);
}

/// Transitions and law only.
struct Transitions {
  std::vector<Transition> transitions;
  std::optional<ExponentialFit> law;
};
Transitions analyse(const std::vector<RunPoint>& points) {
  std::string reason;
  const auto family = CurveFamily::fit(points, reason);
  Transitions result;
  if (!family) return result;
  const auto replicates = family->bootstrap(300, 1);
  result.transitions = find_transitions(*family, replicates);
  result.law = fit_exponential(*family, result.transitions, replicates, Reading::deeper, reason);
  return result;
}

// Without noise the planted crossings come back to the accuracy of the curves.
TEST(StudyFit, RecoversPlantedTransitionsWithoutNoise) {
  PlantedTransitions planted;
  planted.noise = 0;
  const Transitions found = analyse(planted.draw(1));
  ASSERT_TRUE(found.law);
  int crossings = 0;
  for (const Transition& t : found.transitions) {
    if (!t.adjacent) continue;
    ++crossings;
    ASSERT_EQ(t.status, TransitionStatus::crossing) << t.deep;
    for (std::size_t k = 1; k < planted.depths.size(); ++k) {
      if (planted.depths[k] != t.deep) continue;
      EXPECT_NEAR(std::log(*t.params), planted.crossing(k), 0.05) << t.deep;
    }
  }
  EXPECT_EQ(crossings, 4);
  EXPECT_NEAR(found.law->a, planted.a, 0.03);
  EXPECT_NEAR(found.law->b, planted.b, 0.002);
}

// 40 draws with fixed seeds; bench/planted_truth runs more. Each kind of interval states 95 %:
// fewer than 34 of 40 inside has a probability below 0.4 % if that is true.
TEST(StudyFit, StatedIntervalsHoldThePlantedTruth) {
  const PlantedTransitions planted;
  int draws = 0;
  int a_inside = 0;
  int b_inside = 0;
  int stated = 0;
  int held = 0;
  for (std::uint64_t draw = 1; draw <= 40; ++draw) {
    const Transitions found = analyse(planted.draw(draw));
    for (const Transition& t : found.transitions) {
      for (std::size_t k = 1; k < planted.depths.size(); ++k) {
        if (!t.adjacent || planted.depths[k] != t.deep) continue;
        const double truth = std::exp(planted.crossing(k));
        ++stated;
        held += (!t.low || *t.low <= truth) && (!t.high || truth <= *t.high);
      }
    }
    if (!found.law) continue;
    ++draws;
    a_inside += found.law->a_interval.low <= planted.a && planted.a <= found.law->a_interval.high;
    b_inside += found.law->b_interval.low <= planted.b && planted.b <= found.law->b_interval.high;
  }
  EXPECT_EQ(draws, 40);
  EXPECT_GE(a_inside, 34);
  EXPECT_GE(b_inside, 34);
  EXPECT_EQ(stated, 160);
  EXPECT_GE(held, 144);
}

TEST(StudyFit, OneDepthIsFlaggedNotFitted) {
  PlantedTransitions planted;
  planted.depths = {6};
  const StudyFit fit = fit_study(planted.draw(1), quick());
  EXPECT_TRUE(fit.transitions.empty());
  EXPECT_FALSE(fit.law);
  EXPECT_FALSE(fit.joint);
  ASSERT_FALSE(fit.warnings.empty());
  EXPECT_NE(fit.warnings.front().find("one depth only"), std::string::npos);
}

TEST(StudyFit, DepthTiedToWidthIsFlaggedNotFitted) {
  std::vector<RunPoint> points;
  for (int k = 1; k <= 12; ++k) {
    const double params = 12.0 * (2 * k) * (64 * k) * (64 * k);
    points.push_back({"", 2 * k, 64 * k, params, 1e9, 1.7 + 400 * std::pow(params, -0.34), 0});
  }
  const StudyFit fit = fit_study(points, quick());
  EXPECT_FALSE(fit.law);
  EXPECT_FALSE(fit.joint);
  EXPECT_TRUE(fit.transitions.empty());
  bool said = false;
  for (const std::string& w : fit.warnings) said |= w.find("move together") != std::string::npos;
  EXPECT_TRUE(said);
}

TEST(StudyFit, OneRunPerDepthIsFlaggedNotFitted) {
  PlantedTransitions planted;
  planted.sizes = 1;
  const StudyFit fit = fit_study(planted.draw(1), quick());
  EXPECT_TRUE(fit.transitions.empty());
  EXPECT_FALSE(fit.law);
  EXPECT_FALSE(fit.joint);
  EXPECT_FALSE(fit.warnings.empty());
}

// Sizes far above (below) every crossing: the deeper (shallower) network wins throughout.
TEST(StudyFit, TransitionsOutsideTheGridBecomeBounds) {
  PlantedTransitions planted;
  planted.depths = {2, 4, 8};
  planted.noise = 0.0005;
  planted.smallest = 4e6;
  planted.largest = 4e8;
  StudyFit fit = fit_study(planted.draw(1), quick());
  ASSERT_EQ(fit.transitions.size(), 3u);
  for (const Transition& t : fit.transitions) {
    EXPECT_EQ(t.status, TransitionStatus::below_grid);
    EXPECT_FALSE(t.params);
    EXPECT_FALSE(t.low);
    ASSERT_TRUE(t.high);
    EXPECT_LT(*t.high, 1e7);
  }
  EXPECT_FALSE(fit.law);
  planted.depths = {14, 20, 30};
  planted.smallest = 3e4;
  planted.largest = 3e5;
  fit = fit_study(planted.draw(2), quick());
  for (const Transition& t : fit.transitions) {
    EXPECT_EQ(t.status, TransitionStatus::above_grid) << t.deep;
    EXPECT_FALSE(t.params);
    EXPECT_FALSE(t.high);
    EXPECT_TRUE(t.low);
  }
  EXPECT_FALSE(fit.law);
}

// Noise that hides the deeper network's lead: the bound stays, but nobody "still wins".
TEST(StudyFit, NotesOfBoundsFollowTheCurves) {
  PlantedTransitions planted;
  planted.depths = {2, 6};
  planted.noise = 0.02;
  int ahead = 0;
  for (std::uint64_t draw = 1; draw <= 40; ++draw) {
    const StudyFit fit = fit_study(planted.draw(draw), quick());
    ASSERT_EQ(fit.transitions.size(), 1u);
    if (fit.transitions[0].status != TransitionStatus::above_grid) continue;
    // Both curves end at the largest size of their depth, about the same.
    const double lead = fit.curves[0].points.back().loss - fit.curves[1].points.back().loss;
    if (std::fabs(lead) < 0.01) continue;
    const bool said = fit.transitions[0].note.find("deeper network is ahead") != std::string::npos;
    EXPECT_EQ(said, lead > 0) << fit.transitions[0].note;
    ahead += said;
  }
  EXPECT_GT(ahead, 0);
}

TEST(StudyFit, PureNoiseIsUnclear) {
  PlantedTransitions planted;
  planted.gain = 0;
  planted.depths = {2, 4, 8};
  const StudyFit fit = fit_study(planted.draw(5), quick());
  for (const Transition& t : fit.transitions) {
    EXPECT_EQ(t.status, TransitionStatus::unclear) << t.deep;
    EXPECT_FALSE(t.params);
  }
  EXPECT_FALSE(fit.law);
}

TEST(StudyFit, NamesARunThatDoesNotBelong) {
  PlantedTransitions planted;
  planted.seeds = 3;
  std::vector<RunPoint> points = planted.draw(6);
  points[40].id = "diverged";
  points[40].loss *= 1.05;
  const StudyFit fit = fit_study(points, quick());
  bool named = false;
  for (const std::string& w : fit.warnings) named |= w.find("run diverged") != std::string::npos;
  EXPECT_TRUE(named);
}

TEST(StudyFit, NamesADepthThatScattersMore) {
  const auto named = [](const std::vector<RunPoint>& points) {
    std::string all;
    for (const std::string& w : fit_study(points, quick()).warnings) {
      if (w.find("scatter") != std::string::npos) all += w;
    }
    return all;
  };
  PlantedTransitions planted;
  planted.seeds = 2;
  int alarms = 0, found = 0;
  for (std::uint64_t draw = 1; draw <= 5; ++draw) {
    planted.deepest_noise = 1;
    alarms += !named(planted.draw(draw)).empty();
    planted.deepest_noise = 6;
    found += named(planted.draw(draw)).starts_with("runs of 14 layers scatter");
  }
  EXPECT_EQ(alarms, 0);
  EXPECT_GE(found, 4);
}

TEST(StudyFit, RejectsImpossibleRuns) {
  EXPECT_THROW(fit_study({}, quick()), ConfigError);
  std::vector<RunPoint> points = PlantedTransitions().draw(1);
  points[3].loss = -1;
  EXPECT_THROW(fit_study(points, quick()), ConfigError);
}

TEST(StudyLaw, SurvivesItsFileAndPlans) {
  const StudyFit fit = fit_study(PlantedTransitions().draw(3), quick());
  ASSERT_TRUE(fit.law);
  const StudyLawData data = study_law_data(fit);
  const StudyLaw law(parse_study_law(study_law_text(data), "law.json"));
  const StudyLaw original(data);
  const laws::Budget inside = laws::Budget::non_embedding(1e6);
  EXPECT_EQ(law.optimum(inside).layers, original.optimum(inside).layers);
  const double tokens = data.token_rule.at(1e6);
  const laws::Place place{1e6, tokens, data.layers.high};
  EXPECT_EQ(law.evidence(place), laws::Evidence::fitted);
  EXPECT_EQ(law.evidence({1e10, tokens, data.layers.high}), laws::Evidence::extrapolated);
  EXPECT_EQ(law.evidence({1e6, 1000 * tokens, data.layers.high}), laws::Evidence::extrapolated);
  EXPECT_EQ(law.evidence({1e6, tokens, 2 * data.layers.high}), laws::Evidence::extrapolated);
  EXPECT_THROW(parse_study_law("{}", "x"), DataError);
  const auto problem_with = [&](const std::string& good, const std::string& wrong) {
    std::string text = study_law_text(data);
    text.replace(text.find(good), good.size(), wrong);
    const std::size_t checksum = text.rfind(",\n \"checksum\"");
    text = text.substr(0, checksum) + "\n}\n";
    try {
      parse_study_law(text, "law.json");
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(problem_with("\"runs\": ", "\"runs\": null, \"rans\": "),
            "law.json:3: runs must be a number, but is null; 'fathom study fit --save' writes law "
            "files");
  EXPECT_EQ(problem_with("\"per_parameter\": ", "\"per_parameter\": 3, \"other\": "),
            "law.json:15: tokens.per_parameter must be true or false, but is a number; 'fathom "
            "study fit --save' writes law files");
  EXPECT_THROW(parse_study_law("{\"schema\": \"fathom.law.v9\"}", "x"), DataError);
  EXPECT_THROW(study_law_text(StudyLawData{}), ConfigError);
}

TEST(StudyLaw, ExponentialAloneIsTheTransitionLaw) {
  StudyLawData data;
  data.params = {1e6, 1e9};
  data.exponential = laws::LevineFit{};
  const StudyLaw law(data);
  const laws::Budget budget = laws::Budget::non_embedding(1e8);
  EXPECT_NEAR(law.optimum(budget).layers, laws::LevineLaw().optimum(budget).layers, 1e-12);
  EXPECT_FALSE(law.has_loss());
}

}  // namespace
}  // namespace fathom::fits
