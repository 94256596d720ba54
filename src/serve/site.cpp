#include "serve/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include "core/error.h"
#include "core/json_reader.h"
#include "core/json_text.h"
#include "core/text.h"
#include "report/lab_document.h"
#include "report/map_document.h"
#include "report/render_report.h"
#include "report/report_document.h"
#include "report/versions.h"

namespace fathom::serve {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kHtml = "text/html; charset=utf-8";
constexpr const char* kJson = "application/json";
constexpr const char* kText = "text/plain; charset=utf-8";
constexpr const char* kFirstPlan = "1.3B";
constexpr std::size_t kMostPlanWords = 2000;  // characters

/// A request that cannot be answered, with the status that says so.
class Refusal : public std::runtime_error {
 public:
  Refusal(int code, const std::string& why) : std::runtime_error(why), status(code) {}
  int status;
};

Reply json_reply(const Json& document) {
  return {200, kJson, json_text(document, -1)};
}

std::string value_of(const Question& question, const std::string& key, const std::string& other) {
  const auto found = question.query.find(key);
  return found == question.query.end() ? other : found->second;
}

template <class Number>
Number number_of(const Question& question, const std::string& key) {
  const std::string text = value_of(question, key, "");
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size()) return value;
  throw Refusal(400, fmt::format("{}={}: a number is wanted", key, printable(text)));
}

/// Percent-encoded for an address.
std::string encoded(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_';
    result += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return result;
}

/// NAME of "/study/NAME", or nothing.
std::optional<std::string> behind(const std::string& path, std::string_view prefix) {
  if (!path.starts_with(prefix)) return {};
  return path.substr(prefix.size());
}

}  // namespace

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool is_local_host(const std::string& host) {
  std::string name = to_lower(host);
  const std::size_t colon = name.rfind(':');
  const bool has_port = colon != std::string::npos && name.back() != ']';
  if (has_port) name = name.substr(0, colon);
  return name == "127.0.0.1" || name == "localhost" || name == "[::1]";
}

Site::Site(SiteOptions options) : options_(std::move(options)), desk_(options_.fit_command) {}

Reply Site::answer(const Question& question) {
  try {
    if (!is_local_host(question.host)) {
      throw Refusal(403, "this server answers to 127.0.0.1 and localhost only");
    }
    if (question.method != "GET" && question.method != "HEAD") {
      throw Refusal(405, "only GET and HEAD: nothing can be changed here");
    }
    if (question.fetch_site == "cross-site" && question.path.starts_with("/api/")) {
      throw Refusal(403, "pages of other sites are not answered");
    }
    return route(question);
  } catch (const Refusal& refusal) {
    return {refusal.status, kText, fmt::format("{}\n", refusal.what())};
  } catch (const ConfigError& error) {
    return {400, kText, fmt::format("{}\n", error.what())};
  } catch (const nlohmann::json::exception& error) {
    return {500, kText, fmt::format("a file has unexpected contents: {}\n", json_problem(error))};
  } catch (const std::exception& error) {
    return {500, kText, fmt::format("{}\n", error.what())};
  }
}

Reply Site::route(const Question& question) {
  const std::string& path = question.path;
  if (path == "/") return overview_page();
  if (path == "/map") return map_page(question);
  if (path == "/api/overview") return json_reply(overview());
  if (path == "/api/map") return map_row(question);
  if (const auto name = behind(path, "/api/study/")) return study_news(*name, question);
  if (const auto name = behind(path, "/study/")) return study_page(*name);
  if (const auto name = behind(path, "/lab/")) return lab_page(*name);
  if (const auto name = behind(path, "/probe/")) return probe_page(*name);
  throw Refusal(404, "there is no such page; / lists what there is");
}

std::vector<Place> Site::places() {
  return find_places(options_.roots);
}

fs::path Site::find(Place::Kind kind, const std::string& name) {
  for (const Place& place : places()) {
    if (place.kind == kind && place.name == name) return place.path;
  }
  throw Refusal(404, fmt::format("'{}' is not served here; / lists what is", printable(name)));
}

std::shared_ptr<StudyWatch> Site::watch(const fs::path& study) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<StudyWatch>& watch = watches_[study];
  if (!watch) watch = std::make_shared<StudyWatch>(study, desk_, options_.look_every);
  return watch;
}

Json Site::overview() {
  Json studies = Json::array(), labs = Json::array(), probes = Json::array();
  for (const Place& place : places()) {
    switch (place.kind) {
      case Place::Kind::study:
        studies.push_back(watch(place.path)->card(place.name));
        break;
      case Place::Kind::lab:
        labs.push_back({{"name", place.name}});
        break;
      case Place::Kind::probe:
        probes.push_back(probes_.card(place.name, place.path));
        break;
    }
  }
  Json roots = Json::array();
  for (const fs::path& root : options_.roots) roots.push_back(root.string());
  return {{"schema", "fathom.overview.v1"},
          {"title", "Fathom"},
          {"versions", report::program_versions()},
          {"roots", roots},
          {"studies", studies},
          {"labs", labs},
          {"probes", probes}};
}

Reply Site::overview_page() {
  return {200, kHtml, report::render_overview(overview(), "/api/overview")};
}

PlanWords Site::plan_words(const Question& question) {
  const std::string text = value_of(question, "plan", kFirstPlan);
  if (text.size() > kMostPlanWords) throw Refusal(400, "plan: too many words");
  PlanWords words = options_.parse_plan(words_of(text));
  // Files of this machine are not read for a page; laws of served studies go by their names.
  const std::vector<std::string> profiles = hardware_names();
  if (std::find(profiles.begin(), profiles.end(), words.request.hardware) == profiles.end()) {
    throw ConfigError(
        fmt::format("--hardware {}: choose from {}", words.request.hardware, join(profiles, ", ")));
  }
  constexpr std::string_view kStudy = "study:";
  if (words.request.law.starts_with(kStudy)) {
    const std::string name = words.request.law.substr(kStudy.size());
    words.request.law = std::string(kStudy) + find(Place::Kind::study, name).string();
  }
  return words;
}

Reply Site::map_page(const Question& question) {
  const PlanWords words = plan_words(question);
  const std::string text = value_of(question, "plan", kFirstPlan);
  const report::MapRequest request{
      .plan = words.request, .options = words.options, .first_row_only = true};
  return {200, kHtml,
          report::render_served_map(report::make_map_document(request),
                                    "/api/map?plan=" + encoded(text))};
}

Reply Site::map_row(const Question& question) {
  const PlanWords words = plan_words(question);
  const std::string count = value_of(question, "count", "parameters");
  if (count != "parameters" && count != "flops") {
    throw Refusal(400, "count is parameters or flops");
  }
  const double ratio = number_of<double>(question, "ratio");
  if (!std::isfinite(ratio) || ratio <= 0) throw Refusal(400, "ratio must be greater than zero");
  return json_reply(report::make_map_row({.plan = words.request}, count == "flops", ratio));
}

Reply Site::study_page(const std::string& name) {
  std::int64_t version = 0;
  const Json document = watch(find(Place::Kind::study, name))->document(version);
  const std::string news = fmt::format("/api/study/{}?seen={}", encoded(name), version);
  return {200, kHtml, report::render_served_report(document, news)};
}

Reply Site::study_news(const std::string& name, const Question& question) {
  const auto study = watch(find(Place::Kind::study, name));
  return json_reply(study->news(number_of<std::int64_t>(question, "seen")));
}

Reply Site::lab_page(const std::string& name) {
  const Json document = report::make_lab_document(find(Place::Kind::lab, name));
  return {200, kHtml, report::render_served_lab(document)};
}

Reply Site::probe_page(const std::string& name) {
  const Json document = read_probe(find(Place::Kind::probe, name));
  return {200, kHtml, report::render_served_probe(document)};
}

}  // namespace fathom::serve
