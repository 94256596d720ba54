#include "fits/surface_json.h"

#include "core/json_text.h"

namespace fathom::fits {
namespace {

using Json = nlohmann::ordered_json;

Json best_depth_json(const BestDepth& best) {
  return {{"params", best.params},
          {"layers", best.layers},
          {"low", number_or_null(best.low)},
          {"high", number_or_null(best.high)}};
}

Json form_json(const SurfaceForm& form) {
  return {{"name", name_of(form.form)},
          {"delta_aic", form.delta_aic},
          {"heldout_error", form.heldout_error},
          {"probability", form.probability},
          {"log_evidence", form.log_evidence}};
}

Json crossing_json(const Transition& t) {
  return {{"shallow", t.shallow},
          {"deep", t.deep},
          {"adjacent", t.adjacent},
          {"status", name_of(t.status)},
          {"params", number_or_null(t.params)},
          {"low", number_or_null(t.low)},
          {"high", number_or_null(t.high)}};
}

Json constants_json(const LawConstants& law) {
  return {{"a", law.a},
          {"b", law.b},
          {"a_error", law.a_error},
          {"b_error", law.b_error},
          {"correlation", law.correlation},
          {"a_interval", interval_json(law.a_interval)},
          {"b_interval", interval_json(law.b_interval)}};
}

Json length_json(const LengthLaw& law) {
  return {{"share", law.share},
          {"tokens", interval_json(law.tokens)},
          {"runs", law.runs},
          {"a", law.law.a},
          {"b", law.law.b},
          {"a_error", law.law.a_error},
          {"b_error", law.law.b_error},
          {"best_depth", best_depth_json(law.best)}};
}

template <class Items, class Convert>
Json list(const Items& items, Convert&& convert) {
  Json json = Json::array();
  for (const auto& item : items) json.push_back(convert(item));
  return json;
}

}  // namespace

Json interval_json(const Interval& interval) {
  return Json::array({number_or_null(interval.low), number_or_null(interval.high)});
}

Json surface_json(const SurfaceFit& fit) {
  Json json;
  json["runs"] = fit.runs;
  json["shapes"] = fit.shapes;
  json["forms"] = list(fit.forms, form_json);
  json["preferred"] = name_of(fit.preferred);
  json["exponential_odds"] = number_or_null(fit.exponential_odds);
  json.update(constants_json(fit.law));
  json["transition_reading"] = nullptr;
  if (fit.transition_reading) {
    json["transition_reading"] = constants_json(fit.transition_reading->law);
    json["transition_reading"]["pairs"] = fit.transition_reading->pairs;
  }
  json["power_exponent"] = fit.slope;
  json["power_exponent_interval"] = interval_json(fit.slope_interval);
  json["best_depth"] = list(fit.best_depth, best_depth_json);
  json["crossings"] = list(fit.crossings, crossing_json);
  json["noise"] = fit.noise;
  json["depth_noise"] = list(fit.depth_noise, [](const DepthNoise& depth) {
    return Json{{"layers", depth.layers}, {"noise", depth.noise}};
  });
  json["misfit"] = fit.misfit;
  json["length_move"] = nullptr;
  if (fit.length_move) {
    json["length_move"] = {{"move", fit.length_move->move},
                           {"interval", interval_json(fit.length_move->interval)}};
  }
  json["lengths"] = list(fit.lengths, length_json);
  return json;
}

}  // namespace fathom::fits
