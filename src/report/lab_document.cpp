#include "report/lab_document.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/json_reader.h"
#include "lab/frame/claim.h"
#include "lab/frame/records.h"
#include "lab/frame/result_json.h"
#include "report/versions.h"

namespace fathom::report {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// The named fields of an object; nlohmann's exception where one is missing.
Json only(const Json& object, std::initializer_list<const char*> names) {
  Json result = Json::object();
  for (const char* name : names) result[name] = object.at(name);
  return result;
}

Json list_of(const Json& array, Json (*make)(const Json&)) {
  Json result = Json::array();
  for (const Json& each : array) result.push_back(make(each));
  return result;
}

Json criterion_json(const Json& criterion) {
  Json json = only(criterion, {"id", "text", "range", "measured", "outcome"});
  json["interval"] = criterion.value("interval", Json());
  return json;
}

Json table_json(const Json& table) {
  return only(table, {"title", "columns", "rows"});
}

Json point_json(const Json& point) {
  Json json = only(point, {"x", "y"});
  json["low"] = point.value("low", Json());
  json["high"] = point.value("high", Json());
  return json;
}

Json series_json(const Json& series) {
  return {{"name", series.at("name")}, {"points", list_of(series.at("points"), point_json)}};
}

Json chart_json(const Json& chart) {
  Json json = only(chart, {"title", "x", "y", "log_x", "log_y"});
  json["series"] = list_of(chart.at("series"), series_json);
  return json;
}

/// What the page draws of a result. The numbers of the experiment's own fields are in its tables
/// and charts.
Json result_of(const Json& document) {
  Json json = only(document, {"verdict", "boundary", "quick", "part_seconds", "notes"});
  json["setup"] = Json::object();
  for (const auto& [name, value] : document.at("setup").items()) {
    json["setup"][name] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  json["criteria"] = list_of(document.at("criteria"), criterion_json);
  json["tables"] = list_of(document.at("tables"), table_json);
  json["charts"] = list_of(document.at("charts"), chart_json);
  return json;
}

}  // namespace

Json make_lab_document(const fs::path& directory) {
  Json claims = Json::array();
  for (const lab::Claim& claim : lab::claims()) {
    Json entry = lab::claim_json(claim);
    entry["result"] = nullptr;
    entry["questions"] = Json::array();
    claims.push_back(std::move(entry));
  }
  for (const Json& document : lab::read_results(directory)) {
    const std::string id = document.at("id");
    try {
      for (Json& entry : claims) {
        if (entry["id"] != id) continue;
        if (document.at("own_setup").get<bool>()) {
          entry["questions"].push_back(result_of(document));
        } else {
          entry["result"] = result_of(document);
        }
      }
    } catch (const Json::exception& error) {
      throw DataError(fmt::format("{}: the result of {} is damaged ({}); run it again",
                                  directory.string(), id, json_problem(error)));
    }
  }
  return {{"schema", kLabSchema},
          {"title", "Claims about depth"},
          {"created", now_text()},
          {"versions", program_versions()},
          {"claims", std::move(claims)}};
}

}  // namespace fathom::report
