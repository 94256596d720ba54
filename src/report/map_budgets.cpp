#include "report/map_budgets.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "core/counts.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/threads.h"
#include "report/map_document.h"
#include "shape/timing.h"

namespace fathom::report {
namespace {

using Json = nlohmann::ordered_json;
using planner::Plan;
using planner::PlanRequest;

/// mantissas x 10^k, from 10^low to 10^high.
std::vector<double> series(std::initializer_list<double> mantissas, int low, int high) {
  std::vector<double> values;
  for (int power = low; power < high; ++power) {
    for (const double mantissa : mantissas) {
      values.push_back(std::stod(fmt::format("{}e{}", mantissa, power)));
    }
  }
  values.push_back(std::pow(10.0, high));
  return values;
}

void add_stop(std::vector<double>& stops, double value) {
  const auto at = std::lower_bound(stops.begin(), stops.end(), value);
  if (at == stops.end() || *at != value) stops.insert(at, value);
}

Json interval_json(const Interval& interval) {
  return {map_number(interval.low), map_number(interval.high)};
}

Json shape_numbers(const Shape& shape) {
  return {shape.layers, shape.width, shape.heads, shape.kv_heads, shape.head_size, shape.ffn};
}

/// Seconds of a training run of `tokens`, and of one decoded token, per profile.
void add_times(Json& json, const Shape& shape, double tokens, std::int64_t step_tokens,
               const std::vector<Hardware>& hardware) {
  for (const Hardware& device : hardware) {
    const double step = model_step_time(shape, device, step_tokens).total();
    json["train_seconds"].push_back(map_number(step / as_double(step_tokens) * tokens));
    json["decode_seconds"].push_back(
        map_number(model_decode_time(shape, device, as_double(shape.context) / 2).total()));
  }
}

Json plan_json(const Plan& plan, const std::vector<laws::LawPointer>& overlays,
               const std::vector<Hardware>& hardware) {
  Json json{{"parameters", map_number(plan.budget.parameters())},
            {"tokens", map_number(plan.tokens)},
            {"flops", map_number(plan.train_flops)},
            {"block_coefficient", map_number(plan.budget.block_coefficient())},
            {"pick", shape_numbers(plan.recommendation.shape)},
            {"counted", whole_number(plan.recommendation.parameters)},
            {"penalty", map_number(plan.recommendation.penalty)},
            {"optimum", map_number(plan.unrounded.layers)},
            {"band", interval_json(plan.band)},
            {"equals", {plan.verdict.equals.low, plan.verdict.equals.high}},
            {"evidence", to_string(plan.law_evidence)},
            {"equals_evidence", to_string(plan.verdict.equals_evidence)}};
  std::string marks;
  const auto add_law = [&](const laws::Optimum& optimum, laws::Evidence evidence) {
    json["laws"].push_back(map_number(optimum.layers));
    marks += to_string(evidence).front();
  };
  for (const planner::LawRow& row : plan.laws) add_law(row.optimum, row.evidence);
  for (const laws::LawPointer& law : overlays) {
    add_law(law->optimum_after(plan.budget, plan.tokens),
            law->optimum_evidence(plan.budget, plan.tokens));
  }
  json["marks"] = marks;
  add_times(json, plan.recommendation.shape, plan.tokens, plan.request.step_tokens, hardware);
  return json;
}

}  // namespace

double map_number(double value) {
  return std::isfinite(value) ? std::stod(fmt::format("{:.{}g}", value, kMapDigits)) : value;
}

double tokens_per_parameter_of(const PlanRequest& request, double parameters) {
  return request.tokens ? *request.tokens / parameters : request.tokens_per_parameter;
}

MapStops make_stops(const PlanRequest& request, double parameters) {
  MapStops stops;
  // Steps of a fifth, as in resistors; steps of a half in FLOPs are about as wide in parameters.
  stops.parameters = series({1, 1.2, 1.5, 1.8, 2.2, 2.7, 3.3, 3.9, 4.7, 5.6, 6.8, 8.2}, 7, 12);
  stops.flops = series({1, 1.5, 2, 3, 5, 7}, 18, 27);
  stops.tokens_per_parameter = {5, 10, 20, 50, 100, 200, 500, 1000, 2000};
  if (request.parameters) add_stop(stops.parameters, *request.parameters);
  if (request.flops) add_stop(stops.flops, *request.flops);
  add_stop(stops.tokens_per_parameter, tokens_per_parameter_of(request, parameters));
  return stops;
}

Json plan_row(const TableRequest& request, bool by_flops, double tokens_per_parameter) {
  const std::vector<double>& budgets = by_flops ? request.stops.flops : request.stops.parameters;
  std::vector<Json> plans(budgets.size());
  const auto fill = [&](std::size_t index) {
    PlanRequest own = request.plan;
    own.tokens.reset();
    own.tokens_per_parameter = tokens_per_parameter;
    own.parameters = by_flops ? std::nullopt : std::optional(budgets[index]);
    own.flops = by_flops ? std::optional(budgets[index]) : std::nullopt;
    try {
      plans[index] = plan_json(planner::make_plan(own), request.overlays, request.hardware);
    } catch (const ConfigError&) {
      // No shape of this budget meets the constraints: the page says so.
    }
  };
  std::atomic<std::size_t> next = 0;
  {
    std::vector<std::jthread> workers;
    for (unsigned i = 0; i < machine_threads(); ++i) {
      workers.emplace_back([&] {
        for (std::size_t index = next++; index < plans.size(); index = next++) fill(index);
      });
    }
  }
  return plans;
}

Json budget_table(const TableRequest& request, bool by_flops, std::optional<double> only) {
  Json rows = Json::array();
  for (const double tokens : request.stops.tokens_per_parameter) {
    rows.push_back(only && tokens != *only ? Json(nullptr) : plan_row(request, by_flops, tokens));
  }
  return {{"stops", by_flops ? request.stops.flops : request.stops.parameters}, {"plans", rows}};
}

}  // namespace fathom::report
