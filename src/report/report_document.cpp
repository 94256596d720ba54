#include "report/report_document.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <unordered_map>

#include "core/counts.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/text.h"
#include "core/units.h"
#include "data/token_set.h"
#include "engine/device.h"
#include "fits/study_fit_json.h"
#include "laws/levine.h"
#include "report/advice.h"
#include "report/versions.h"
#include "study/design_text.h"
#include "study/fit.h"
#include "study/rounds.h"
#include "study/token_store.h"

namespace fathom::report {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using study::RunRow;
using study::Study;

constexpr std::size_t kCurvePoints = 50;
constexpr std::size_t kMostDocumentBytes = std::size_t{1} << 30;

std::string processor_name() {
  std::ifstream stream("/proc/cpuinfo");
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

std::string device_name(engine::DeviceKind device) {
  return device == engine::DeviceKind::cpu ? processor_name() : to_string(device);
}

Json spec_json(const Study& study) {
  Json spec{{"toml", study.spec.text}, {"corpus", nullptr}, {"tokenizer", nullptr}};
  if (!study.has_tokens) return spec;
  const study::CorpusFacts corpus = study::read_corpus_facts(study.folder);
  spec["corpus"] = {{"name", corpus.name},
                    {"bytes", corpus.bytes},
                    {"files", corpus.files},
                    {"xxh128", corpus.hash},
                    {"prepared", corpus.summary}};
  const data::TokenSet tokens(study.folder.tokens());
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

/// Tokens of the training text; 0 where they were not prepared or not kept.
std::int64_t text_tokens(const Study& study) {
  const std::optional<study::TokenFacts> facts = study::read_token_facts(study.folder);
  return facts ? facts->training_tokens : 0;
}

Json curves_json(const Study& study, const std::vector<RunRow>& rows) {
  std::unordered_map<std::string, const study::PlannedRun*> plans;
  for (const study::PlannedRun& run : study.runs) plans[run.id] = &run;
  Json curves = Json::array();
  for (const RunRow& row : rows) {
    if (row.id.empty()) continue;
    // For runs that ended before the spec was changed, only the record has the size of a step.
    const auto plan = plans.find(row.id);
    const double tokens_per_step =
        plan != plans.end() ? as_double(plan->second->spec.tokens_per_step())
                            : as_double(row.tokens) / std::max(1.0, as_double(row.steps));
    train::RunCurve curve(study.folder.run(row.id).metrics());
    curve.read_on();
    if (Json json = curve_json(row.id, curve, tokens_per_step); !json.is_null()) {
      curves.push_back(std::move(json));
    }
  }
  return curves;
}

std::vector<std::string> state_sentences(const std::vector<RunRow>& rows) {
  std::size_t done = 0;
  const RunRow* best = nullptr;
  for (const RunRow& row : rows) {
    if (!std::isfinite(row.final_loss)) continue;
    ++done;
    if (best == nullptr || row.final_loss < best->final_loss) best = &row;
  }
  const std::string state =
      best == nullptr
          ? fmt::format("None of {} runs has finished.", rows.size())
          : fmt::format(
                "{} of {} runs have a held-out loss; the lowest is {:.4f} nats per token, of {} "
                "layers x {} ({} parameters).",
                done, rows.size(), best->final_loss, best->layers, best->width,
                format_count(as_double(best->non_embedding)));
  return {state, "Nothing was fitted to them yet."};
}

/// The law of arXiv 2006.12467; the correlation of its errors is unpublished.
Json published_json() {
  const laws::LevineFit law;
  return {{"a", law.a},
          {"b", law.b},
          {"a_error", law.a_error},
          {"b_error", law.b_error},
          {"correlation", nullptr},
          {"name", laws::LevineLaw().info().title},
          {"source", laws::LevineLaw().info().source}};
}

Json rows_json(const std::vector<RunRow>& rows) {
  Json runs = Json::array();
  for (const RunRow& row : rows) runs.push_back(study::row_json(row));
  return runs;
}

Json advice_json(const std::vector<Advice>& advice) {
  Json list = Json::array();
  for (const Advice& each : advice) {
    list.push_back({{"text", each.text},
                    {"command", each.command.empty() ? Json(nullptr) : Json(each.command)}});
  }
  return list;
}

Json findings_json(const Study& study, const std::vector<RunRow>& rows,
                   const std::optional<fits::StudyFit>& fit) {
  const AdviceGround ground{study.folder.path().filename().string(), rows, fit, text_tokens(study)};
  return {{"answer", fit ? fit->answer : state_sentences(rows)},
          {"advice", advice_json(advise(ground))},
          {"fit", fit ? fits::to_json(*fit) : Json(nullptr)}};
}

/// A part of the findings, or `otherwise` while there are none.
Json found(const Json& findings, const char* part, const Json& otherwise) {
  if (!findings.is_object() || !findings.contains(part)) return otherwise;
  return findings[part];
}

}  // namespace

Json curve_json(const std::string& id, const train::RunCurve& curve, double tokens_per_step) {
  const auto points = [&](const std::vector<train::RunCurve::Point>& all) {
    Json list = Json::array();
    for (const auto& [step, loss] : thinned(all, kCurvePoints)) {
      list.push_back({step * tokens_per_step, loss});
    }
    return list;
  };
  if (curve.held_out().empty() && curve.training().empty()) return nullptr;
  return {{"id", id}, {"points", points(curve.held_out())}, {"training", points(curve.training())}};
}

Json assemble_report(const Study& study, const std::vector<RunRow>& rows, const Json& findings,
                     Json curves) {
  Json document = assemble_report(study.spec.title.empty() ? "Study" : study.spec.title, rows,
                                  findings, std::move(curves));
  document["question"] = study.spec.question;
  document["spec"] = spec_json(study);
  document["versions"]["device"] = device_name(study.spec.device);
  return document;
}

Json assemble_report(const std::string& title, const std::vector<RunRow>& rows,
                     const Json& findings, Json curves) {
  return {{"schema", kReportSchema},
          {"title", title},
          {"created", now_text()},
          {"question", nullptr},
          {"answer", found(findings, "answer", state_sentences(rows))},
          {"advice", found(findings, "advice", Json::array())},
          {"spec", nullptr},
          {"versions", program_versions()},
          {"runs", rows_json(rows)},
          {"curves", std::move(curves)},
          {"fit", found(findings, "fit", nullptr)},
          {"published", published_json()}};
}

Json report_document(const Study& study, const std::vector<RunRow>& rows,
                     const std::optional<fits::StudyFit>& fit) {
  return assemble_report(study, rows, findings_json(study, rows, fit), curves_json(study, rows));
}

Json make_report_document(const fs::path& directory) {
  const Study study = study::open_study(directory);
  const std::vector<RunRow> rows = study::collect_rows(study);
  const std::optional<fits::StudyFit> fit = study::fit_runs(rows);
  study::save_law(study.folder, fit);
  return report_document(study, rows, fit);
}

Json make_findings(const fs::path& directory) {
  const Study study = study::open_study(directory);
  const std::vector<RunRow> rows = study::collect_rows(study);
  Json findings = findings_json(study, rows, study::fit_runs(rows));
  findings["decided"] =
      study.spec.design
          ? Json(study::design_lines(study::look_at_design(study, rows), *study.spec.design))
          : findings["answer"];
  return findings;
}

Json make_table_document(const fs::path& table, const fits::PointSelection& selection) {
  const std::vector<fits::RunPoint> points = fits::read_run_points(table, selection);
  const std::vector<RunRow> rows = study::rows_of_points(points);
  const std::optional<fits::StudyFit> fit = fits::fit_study(points);
  const Json findings{{"answer", fit->answer},
                      {"advice", advice_json(advise({"", rows, fit}))},
                      {"fit", fits::to_json(*fit)}};
  Json document = assemble_report(table.stem().string(), rows, findings, Json::array());
  document["question"] = "What do these runs say about depth and width?";
  return document;
}

Json read_report_document(const fs::path& path) {
  const std::string origin = path.string();
  Json document = parse_json(read_text_file(path, kMostDocumentBytes), origin);
  if (!document.is_object()) {
    throw DataError(fmt::format("{}: a report document is a JSON object", origin));
  }
  const Json schema = document.value("schema", Json());
  const std::string name = schema.is_string() ? schema.get<std::string>() : "";
  if (name == "fathom.report/1") {  // before 0.3
    document["schema"] = kReportSchema;
  } else if (name != kReportSchema) {
    throw DataError(fmt::format("{}: schema is '{}', but this program reads '{}'", origin,
                                printable(name), kReportSchema));
  }
  return document;
}

}  // namespace fathom::report
