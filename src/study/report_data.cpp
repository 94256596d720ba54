#include "study/report_data.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/units.h"
#include "data/token_set.h"
#include "study/export.h"
#include "study/study_rows.h"
#include "study/token_store.h"

namespace fathom::study {

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::ordered_json;

// ln d = a + b L, arXiv 2006.12467; the errors are quoted from memory of the paper.
constexpr double kPublishedA = 5.039, kPublishedB = 0.0555;
constexpr double kPublishedAError = 0.030, kPublishedBError = 0.0013;

constexpr std::size_t kCurvePoints = 50;

Json number_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string processor_name() {
  std::ifstream stream("/proc/cpuinfo");
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

Json spec_json(const fs::path& directory, const Study& study) {
  Json spec{{"toml", study.spec.text}, {"corpus", nullptr}, {"tokenizer", nullptr}};
  if (!study.has_tokens) return spec;
  const CorpusFacts corpus = read_corpus_facts(directory);
  spec["corpus"] = {{"name", corpus.name},
                    {"bytes", corpus.bytes},
                    {"files", corpus.files},
                    {"xxh128", corpus.hash},
                    {"prepared", corpus.summary}};
  const data::TokenSet tokens(study.tokens());
  Json counts;
  for (const data::Split split : data::kSplits) {
    counts[name_of(split)] = tokens.file(split).info().count;
  }
  spec["tokenizer"] = {{"kind", tokens.tokenizer().kind()},
                       {"vocabulary", tokens.tokenizer().vocabulary()},
                       {"hash", tokens.tokenizer().hash().hex()},
                       {"tokens", counts},
                       {"tokens_hash", tokens.hash().hex()}};
  return spec;
}

Json run_json(const RunRow& row) {
  return {{"id", row.id},
          {"layers", row.layers},
          {"width", row.width},
          {"heads", row.heads},
          {"params", row.params},
          {"tokens", row.tokens},
          {"seed", row.seed},
          {"loss", number_or_null(row.loss)},
          {"bits_per_byte", number_or_null(row.bits_per_byte)},
          {"status", to_string(row.status)},
          {"reason", row.reason},
          {"seconds", number_or_null(row.seconds)},
          {"tokens_per_second", number_or_null(row.tokens_per_second)},
          {"flops", number_or_null(row.flops)}};
}

/// Finished runs know their own steps; the plan knows those of the others.
double tokens_per_step(const Study& study, const RunRow& row) {
  if (const PlannedRun* run = study.find(row.id)) {
    return static_cast<double>(run->spec.tokens_per_step());
  }
  const RunState state = read_run_state(study.run_folder(row.id));
  if (!state.record || state.record->steps == 0) return 0;
  return static_cast<double>(state.record->tokens) / static_cast<double>(state.record->steps);
}

std::string state_sentence(const std::vector<RunRow>& rows) {
  std::size_t done = 0;
  const RunRow* best = nullptr;
  for (const RunRow& row : rows) {
    if (!std::isfinite(row.loss)) continue;
    ++done;
    if (best == nullptr || row.loss < best->loss) best = &row;
  }
  if (best == nullptr) return fmt::format("None of {} runs has finished.", rows.size());
  return fmt::format(
      "{} of {} runs have a held-out loss; the lowest is {:.4f} nats a token, of {} layers x {} "
      "({} parameters).",
      done, rows.size(), best->loss, best->layers, best->width, format_count(best->params));
}

/// The fit's own sentences; before there is a fit, how far the runs are.
Json answer(const Json& fit, const std::vector<RunRow>& rows) {
  if (fit.is_object() && fit.contains("answer")) return fit["answer"];
  return {state_sentence(rows), "Nothing was fitted to them yet."};
}

}  // namespace

std::string report_data(const fs::path& directory, const std::string& fit_json) {
  const Study study = open_study(directory);
  const std::vector<RunRow> rows = collect_rows(study);
  const Json fit = fit_json.empty() ? Json(nullptr) : Json(parse_json(fit_json, "the fit"));
  Json document{{"schema", "fathom.report/1"},
                {"title", study.spec.title.empty() ? "Study" : study.spec.title},
                {"created", now_text()},
                {"question", study.spec.question},
                {"answer", answer(fit, rows)},
                {"spec", spec_json(directory, study)},
                {"versions",
                 {{"fathom", FATHOM_VERSION},
                  {"compiler", "g++ " __VERSION__},
                  {"device", study.spec.device == "cpu" ? processor_name() : study.spec.device}}},
                {"runs", Json::array()},
                {"curves", Json::array()},
                {"fit", fit},
                {"published",
                 {{"a", kPublishedA},
                  {"b", kPublishedB},
                  {"a_error", kPublishedAError},
                  {"b_error", kPublishedBError}}}};
  for (const RunRow& row : rows) {
    document["runs"].push_back(run_json(row));
    if (row.id.empty()) continue;
    const auto curve =
        read_curve(study.run_folder(row.id), tokens_per_step(study, row), kCurvePoints);
    if (curve.empty()) continue;
    Json points = Json::array();
    for (const auto& [tokens, loss] : curve) points.push_back({tokens, loss});
    document["curves"].push_back({{"id", row.id}, {"points", points}});
  }
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace fathom::study
