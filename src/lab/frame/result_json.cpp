#include "lab/frame/result_json.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"

namespace fathom::lab {
namespace {

Json bounds_json(const Criterion& criterion) {
  return {{"id", criterion.id},
          {"text", criterion.text},
          {"low", finite_or_null(criterion.low)},
          {"high", finite_or_null(criterion.high)},
          {"range", criterion.range()}};
}

Json judged_json(const JudgedCriterion& judged) {
  Json json = bounds_json(*judged.criterion);
  json["measured"] = judged.measure.value ? finite_or_null(*judged.measure.value) : Json(nullptr);
  if (judged.measure.interval) {
    json["interval"] = {judged.measure.interval->low, judged.measure.interval->high};
  }
  json["outcome"] = to_string(judged.outcome);
  return json;
}

Json table_json(const ExhibitTable& table) {
  return {{"title", table.title}, {"columns", table.columns}, {"rows", table.rows}};
}

Json chart_json(const ExhibitChart& chart) {
  Json series = Json::array();
  for (const ChartSeries& each : chart.series) {
    Json dots = Json::array();
    for (const ChartDot& dot : each.dots) {
      Json point{{"x", dot.x}, {"y", finite_or_null(dot.y)}};
      if (dot.low && dot.high) {
        point["low"] = finite_or_null(*dot.low);
        point["high"] = finite_or_null(*dot.high);
      }
      dots.push_back(std::move(point));
    }
    series.push_back({{"name", each.name}, {"points", std::move(dots)}});
  }
  return {{"title", chart.title}, {"x", chart.x_label},   {"y", chart.y_label},
          {"log_x", chart.log_x}, {"log_y", chart.log_y}, {"series", std::move(series)}};
}

}  // namespace

Json finite_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json claim_json(const Claim& claim) {
  Json json{{"id", claim.id},
            {"topic", claim.topic},
            {"topic_about", claim.topic_about},
            {"title", claim.title},
            {"source", claim.source},
            {"arxiv", claim.arxiv},
            {"place", claim.place},
            {"statement", claim.statement},
            {"published", claim.published},
            {"experiment", claim.experiment},
            {"kind", to_string(claim.kind)},
            {"cost", {{"two_cores", claim.cpu_cost}, {"gpu", claim.gpu_cost}}},
            {"page", claim.page}};
  json["criteria"] = Json::array();
  for (const Criterion& criterion : claim.criteria) {
    Json each = bounds_json(criterion);
    each["boundary"] = criterion.boundary;
    json["criteria"].push_back(std::move(each));
  }
  json["finding"] = {{"verdict", to_string(claim.finding.verdict)},
                     {"by", to_string(claim.by)},
                     {"summary", claim.finding.summary}};
  json["undecided"] = claim.undecided;
  return json;
}

Json result_json(const LabResult& result) {
  const Claim& claim = *result.claim;
  Json json{{"schema", kResultSchema},     {"id", claim.id},
            {"title", claim.title},        {"verdict", to_string(result.judgement.verdict)},
            {"by", to_string(claim.by)},   {"boundary", result.judgement.boundary},
            {"quick", result.setup.quick}, {"own_setup", result.setup.own},
            {"setup", result.setup.values}};
  if (result.judgement.verdict == Verdict::undecided && !claim.undecided.empty()) {
    json["would_cost"] = claim.undecided;
  }
  json["criteria"] = Json::array();
  for (const JudgedCriterion& judged : result.judgement.criteria) {
    json["criteria"].push_back(judged_json(judged));
  }
  for (const auto& [key, value] : result.conclusion.data.items()) {
    if (json.contains(key)) throw InternalError("an experiment may not replace " + key);
    json[key] = value;
  }
  json["notes"] = result.conclusion.notes;
  json["tables"] = Json::array();
  for (const ExhibitTable& table : result.conclusion.tables) {
    json["tables"].push_back(table_json(table));
  }
  json["charts"] = Json::array();
  for (const ExhibitChart& chart : result.conclusion.charts) {
    json["charts"].push_back(chart_json(chart));
  }
  json["parts"] = result.parts;
  json["resumed"] = result.resumed;
  json["seconds"] = result.seconds;
  json["part_seconds"] = result.part_seconds;
  if (result.dated > 0) {
    json["wall"] = {{"parts", result.dated},
                    {"seconds", result.busy.seconds},
                    {"at_once", result.busy.at_once}};
  }
  return json;
}

void check_result(const Json& document, const std::string& origin) {
  const auto has = [&](const char* key, bool (Json::*is_type)() const) {
    return document.contains(key) && (document[key].*is_type)();
  };
  const bool good = document.is_object() && has("schema", &Json::is_string) &&
                    document["schema"] == kResultSchema && has("id", &Json::is_string) &&
                    has("own_setup", &Json::is_boolean) && has("setup", &Json::is_object) &&
                    has("verdict", &Json::is_string);
  if (!good) throw DataError(fmt::format("{}: not a result of 'fathom lab run'", origin));
}

}  // namespace fathom::lab
