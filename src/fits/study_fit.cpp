#include "fits/study_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "core/counts.h"
#include "core/error.h"
#include "fits/condensed_runs.h"
#include "fits/design_check.h"
#include "fits/statistics.h"
#include "fits/study_verdict.h"

namespace fathom::fits {
namespace {

constexpr int kCurvePoints = 60;

void check_points(std::span<const RunPoint> points) {
  if (points.empty()) throw ConfigError("no finished runs to fit");
  for (const RunPoint& point : points) {
    const auto check = [&](double value, const RunRange& range) {
      if (range.holds(value)) return;
      throw ConfigError(fmt::format("run {}: {} is {}, not a number from {:g} to {:g}", point.id,
                                    range.name, value, range.low, range.high));
    };
    check(as_double(point.layers), kRunLayers);
    check(as_double(point.width), kRunWidth);
    check(point.params, kRunParams);
    check(point.tokens, kRunTokens);
    check(point.loss, kRunLoss);
  }
}

void describe(std::span<const RunPoint> points, StudyFit& fit) {
  const auto range = [&](auto&& value) {
    Interval interval{1e300, -1e300};
    for (const RunPoint& point : points) {
      interval.low = std::min(interval.low, static_cast<double>(value(point)));
      interval.high = std::max(interval.high, static_cast<double>(value(point)));
    }
    return interval;
  };
  fit.runs = points.size();
  fit.params = range([](const RunPoint& p) { return p.params; });
  fit.tokens = range([](const RunPoint& p) { return p.tokens; });
  fit.layers = range([](const RunPoint& p) { return p.layers; });
  fit.width = range([](const RunPoint& p) { return p.width; });
  std::vector<double> coefficients;
  for (const RunPoint& p : points) {
    const auto width = as_double(p.width);
    coefficients.push_back(p.params / (as_double(p.layers) * width * width));
  }
  fit.block_coefficient = quantile(coefficients, 0.5);
}

/// Depths are compared at equal size and equal training: of every shape the longest runs.
std::vector<RunPoint> longest_runs(std::span<const RunPoint> points) {
  std::map<std::pair<std::int64_t, std::int64_t>, double> longest;
  for (const RunPoint& p : points) {
    double& tokens = longest[{p.layers, p.width}];
    tokens = std::max(tokens, p.tokens);
  }
  std::vector<RunPoint> kept;
  for (const RunPoint& p : points) {
    if (p.tokens > 0.99 * longest[{p.layers, p.width}]) kept.push_back(p);
  }
  return kept;
}

/// Whichever of tokens and tokens per parameter scatters less over the runs.
TokenRule find_token_rule(const std::vector<RunPoint>& compared) {
  std::vector<double> tokens;
  std::vector<double> ratios;
  for (const RunPoint& p : compared) {
    tokens.push_back(std::log(p.tokens));
    ratios.push_back(std::log(p.tokens / p.params));
  }
  const bool fixed = compared.size() < 2 || deviation(tokens) <= deviation(ratios);
  return {std::exp(quantile(fixed ? tokens : ratios, 0.5)), !fixed};
}

/// Warns when depths of equal size were trained on different token counts: the curves would then
/// compare training lengths.
void check_tokens(const std::vector<RunPoint>& compared, StudyFit& fit) {
  double worst = 1;
  for (const RunPoint& a : compared) {
    for (const RunPoint& b : compared) {
      if (a.layers == b.layers || std::fabs(std::log(a.params / b.params)) > 0.1) continue;
      worst = std::max(worst, a.tokens / b.tokens);
    }
  }
  // Tokens may follow the size; sizes 10 % apart may differ by as much.
  if (worst > 1.25) {
    fit.warnings.push_back(
        fmt::format("runs of equal size differ up to {:.1f} times in tokens; "
                    "transitions compare depths and training lengths at once",
                    worst));
  }
}

std::vector<DepthCurve> draw_curves(const CurveFamily& family) {
  const double student = student_quantile(0.975, family.degrees_of_freedom());
  std::vector<DepthCurve> curves;
  for (std::size_t k = 0; k < family.depths().size(); ++k) {
    const CurveFamily::Depth& depth = family.depths()[k];
    DepthCurve curve{depth.layers, {}};
    for (int i = 0; i < kCurvePoints; ++i) {
      const double x = depth.low + (depth.high - depth.low) * i / (kCurvePoints - 1);
      const double middle = family.log_loss(k, x);
      const double half = student * family.error(k, x);
      curve.points.push_back(
          {std::exp(x), std::exp(middle), std::exp(middle - half), std::exp(middle + half)});
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

void fit_transitions(const std::vector<RunPoint>& compared, const FitOptions& options,
                     StudyFit& fit) {
  std::string reason;
  const auto family = CurveFamily::fit(compared, reason);
  if (!family) {
    fit.warnings.push_back("no transitions: " + reason);
    return;
  }
  fit.noise = family->noise();
  fit.curves = draw_curves(*family);
  for (const auto& [id, score] : family->strays()) {
    fit.warnings.push_back(
        fmt::format("run {} lies {:+.1f} standard errors off its curve; look at "
                    "it, it widens every interval",
                    id, score));
  }
  for (const CurveFamily::Scatter& depth : family->uneven()) {
    fit.warnings.push_back(
        fmt::format("runs of {} layers scatter {:.1f} times as much as the others: intervals with "
                    "them are too short, the others too long; fit without them too (--where "
                    "'layers!={}')",
                    depth.layers, depth.times, depth.layers));
  }
  const auto replicates = family->bootstrap(options.replicates, options.seed);
  fit.transitions = find_transitions(*family, replicates);
  fit.law = fit_exponential(*family, fit.transitions, replicates, Reading::deeper, reason);
  if (!fit.law) {
    fit.warnings.push_back("no exponential law: " + reason);
    return;
  }
  fit.law_midpoint =
      fit_exponential(*family, fit.transitions, replicates, Reading::midpoint, reason);
}

std::vector<JointForm> candidate_forms(bool tokens) {
  if (!tokens) return {{true, true, false, false, false}, {true, true, true, false, false}};
  return {{true, true, false, true, false},
          {true, true, false, true, true},
          {true, true, true, true, false},
          {true, true, true, true, true}};
}

void fit_joint_forms(std::span<const RunPoint> points, const DesignCheck& design,
                     const FitOptions& options, StudyFit& fit) {
  if (!design.separates_depth_and_width) {
    fit.warnings.push_back("no joint law: the runs cannot separate depth from width");
    return;
  }
  std::map<std::pair<std::int64_t, std::int64_t>, int> shapes;
  for (const RunPoint& p : points) ++shapes[{p.layers, p.width}];
  const std::size_t left_out = std::clamp<std::size_t>(shapes.size() / 6, 1, 3);
  JointFits fits(points, options.joint);
  HeldOutShapes held_out(points, options.joint, left_out, options.holdout_tokens_above);
  std::string reason;
  for (const JointForm& form : candidate_forms(design.separates_tokens)) {
    // Two runs per coefficient: with fewer, the form follows the noise.
    if (points.size() < 2 * as_size(form.size())) {
      reason = fmt::format("{} runs for the {} coefficients of {}", points.size(), form.size(),
                           form.name());
      continue;
    }
    auto joint = fits.fit(form, reason);
    if (!joint) continue;
    held_out.judge(*joint);
    fit.forms.push_back(std::move(*joint));
  }
  if (fit.forms.empty()) {
    fit.warnings.push_back("no joint law: " + reason);
    return;
  }
  fit.joint = *std::min_element(fit.forms.begin(), fit.forms.end(),
                                [](const JointFit& a, const JointFit& b) { return a.aic < b.aic; });
  bootstrap_joint(points, options.joint, options.joint_replicates, *fit.joint);
  if (!design.separates_tokens) {
    fit.warnings.push_back(
        "tokens do not vary apart from size: the joint law holds for this study's "
        "training length only");
  }
}

void fit_all_runs(std::span<const RunPoint> points, const DesignCheck& design,
                  const FitOptions& options, StudyFit& fit) {
  std::string reason = "the runs cannot separate depth from width";
  if (design.separates_depth_and_width) fit.surface = fit_surface(points, options.surface, reason);
  if (!fit.surface) fit.warnings.push_back("no surface: " + reason);
}

}  // namespace

StudyFit fit_study(std::span<const RunPoint> given, const FitOptions& options) {
  // One order for all: the bootstrap's draws must not depend on how the runs were listed.
  std::vector<RunPoint> points(given.begin(), given.end());
  std::sort(points.begin(), points.end(), [](const RunPoint& a, const RunPoint& b) {
    return std::tie(a.layers, a.width, a.params, a.tokens, a.seed, a.loss, a.id) <
           std::tie(b.layers, b.width, b.params, b.tokens, b.seed, b.loss, b.id);
  });
  check_points(points);
  StudyFit fit;
  describe(points, fit);
  CondensedRuns condensed = condense_runs(points, options.most_runs);
  points = std::move(condensed.runs);
  const DesignCheck design = check_design(points);
  fit.warnings = design.warnings;
  if (!condensed.note.empty()) fit.warnings.push_back(condensed.note);
  const std::vector<RunPoint> compared = longest_runs(points);
  fit.runs_compared = compared.size();
  fit.token_rule = find_token_rule(compared);
  check_tokens(compared, fit);
  if (design.depths >= 2) fit_transitions(compared, options, fit);
  fit_all_runs(points, design, options, fit);
  fit_joint_forms(points, design, options, fit);
  fit.answer = study_answer(fit);
  return fit;
}

}  // namespace fathom::fits
