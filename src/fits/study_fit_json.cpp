#include "fits/study_fit_json.h"

#include "core/json_text.h"
#include "core/text.h"
#include "fits/surface_json.h"
#include "laws/levine.h"

namespace fathom::fits {
namespace {

using Json = nlohmann::ordered_json;

Json transition_json(const Transition& t) {
  return {{"shallow", t.shallow},
          {"deep", t.deep},
          {"adjacent", t.adjacent},
          {"status", name_of(t.status)},
          {"params", number_or_null(t.params)},
          {"low", number_or_null(t.low)},
          {"high", number_or_null(t.high)},
          {"width", number_or_null(t.width)},
          {"log_error", t.params ? Json(t.log_error) : Json(nullptr)},
          {"grid", {t.grid_low, t.grid_high}},
          {"note", t.note}};
}

Json law_json(const std::optional<ExponentialFit>& law) {
  if (!law) return nullptr;
  const laws::LevineFit published;
  Json points = Json::array();
  for (const TransitionPoint& point : law->points) {
    points.push_back(
        {{"layers", point.layers}, {"width", point.width}, {"log_error", point.log_error}});
  }
  return {{"reading", name_of(law->reading)},
          {"a", law->a},
          {"b", law->b},
          {"a_error", law->a_error},
          {"b_error", law->b_error},
          {"correlation", law->correlation},
          {"a_interval", interval_json(law->a_interval)},
          {"b_interval", interval_json(law->b_interval)},
          {"chi2", law->chi2},
          {"degrees_of_freedom", law->degrees_of_freedom},
          {"points", points},
          {"published",
           {{"a", published.a},
            {"b", published.b},
            {"a_score", law->a_score},
            {"b_score", law->b_score},
            {"chi2", law->published_chi2}}}};
}

Json joint_json(const JointFit& joint) {
  const JointLaw law = joint.law();
  Json coefficients = Json::object();
  const auto interval = [&](std::size_t place) {
    return place < joint.intervals.size() ? interval_json(joint.intervals[place]) : Json(nullptr);
  };
  const auto terms = joint.form.terms();
  for (std::size_t k = 0; k < terms.size(); ++k) {
    const int term = static_cast<int>(k);
    coefficients[terms[k]] = {{"log_coefficient", law.log_coefficient(term)},
                              {"exponent", law.exponent(term)},
                              {"log_coefficient_interval", interval(2 * k)},
                              {"exponent_interval", interval(2 * k + 1)}};
  }
  if (joint.form.interaction) {
    coefficients["interaction"] = {{"exponent", law.interaction()},
                                   {"exponent_interval", interval(2 * terms.size())}};
  }
  coefficients["constant"] = {{"log", law.log_constant()},
                              {"log_interval", interval(joint.intervals.size() - 1)}};
  return {{"form", joint.form.name()},
          {"coefficients", coefficients},
          {"runs", joint.runs},
          {"objective", joint.objective},
          {"mean_error", joint.mean_error},
          {"aic", joint.aic},
          {"holdout_error", number_or_null(joint.holdout_error)},
          {"holdout_runs", joint.holdout_runs},
          {"holdout_shapes", joint.holdout_shapes},
          {"starts_at_best", joint.reached},
          {"unphysical_rejected", joint.rejected},
          {"replicates", joint.replicates.size()}};
}

}  // namespace

Json to_json(const StudyFit& fit) {
  Json json;
  json["answer"] = fit.answer;
  json["verdict"] = join(fit.answer, " ");
  json["warnings"] = fit.warnings;
  json["runs"] = fit.runs;
  json["runs_compared"] = fit.runs_compared;
  json["params"] = interval_json(fit.params);
  json["layers"] = interval_json(fit.layers);
  json["width"] = interval_json(fit.width);
  json["tokens"] = interval_json(fit.tokens);
  json["token_rule"] = {{"count", fit.token_rule.count},
                        {"per_parameter", fit.token_rule.per_parameter}};
  json["noise"] = fit.noise;
  json["transitions"] = Json::array();
  for (const Transition& t : fit.transitions) json["transitions"].push_back(transition_json(t));
  json["law"] = law_json(fit.law);
  json["law_midpoint"] = law_json(fit.law_midpoint);
  json["joint"] = fit.joint ? joint_json(*fit.joint) : Json(nullptr);
  json["forms"] = Json::array();
  for (const JointFit& form : fit.forms) json["forms"].push_back(joint_json(form));
  json["surface"] = fit.surface ? surface_json(*fit.surface) : Json(nullptr);
  json["curves"] = Json::array();
  for (const DepthCurve& curve : fit.curves) {
    Json points = Json::array();
    for (const CurvePoint& p : curve.points) {
      points.push_back({{"params", p.params}, {"loss", p.loss}, {"low", p.low}, {"high", p.high}});
    }
    json["curves"].push_back({{"layers", curve.layers}, {"points", points}});
  }
  return json;
}

}  // namespace fathom::fits
