#include "report/report_document.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>

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
#include "report/versions.h"
#include "study/export.h"
#include "study/fit.h"
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

/// Of runs that ended before the spec was changed only the record knows the size of a step.
double tokens_per_step(const Study& study, const RunRow& row) {
  if (const study::PlannedRun* run = study.find(row.id)) {
    return as_double(run->spec.tokens_per_step());
  }
  return row.steps == 0 ? 0 : as_double(row.tokens) / as_double(row.steps);
}

Json curves_json(const Study& study, const std::vector<RunRow>& rows) {
  Json curves = Json::array();
  for (const RunRow& row : rows) {
    if (row.id.empty()) continue;
    Json points = Json::array();
    for (const auto& [step, loss] : study::read_curve(study.folder.run(row.id), kCurvePoints)) {
      points.push_back({as_double(step) * tokens_per_step(study, row), loss});
    }
    if (!points.empty()) curves.push_back({{"id", row.id}, {"points", points}});
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
                "{} of {} runs have a held-out loss; the lowest is {:.4f} nats a token, of {} "
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

}  // namespace

Json report_document(const Study& study, const std::vector<RunRow>& rows,
                     const std::optional<fits::StudyFit>& fit) {
  Json runs = Json::array();
  for (const RunRow& row : rows) runs.push_back(study::row_json(row));
  Json versions = program_versions();
  versions["device"] = device_name(study.spec.device);
  return {{"schema", kReportSchema},
          {"title", study.spec.title.empty() ? "Study" : study.spec.title},
          {"created", now_text()},
          {"question", study.spec.question},
          {"answer", fit ? fit->answer : state_sentences(rows)},
          {"spec", spec_json(study)},
          {"versions", versions},
          {"runs", runs},
          {"curves", curves_json(study, rows)},
          {"fit", fit ? fits::to_json(*fit) : Json(nullptr)},
          {"published", published_json()}};
}

Json make_report_document(const fs::path& directory) {
  const Study study = study::open_study(directory);
  const std::vector<RunRow> rows = study::collect_rows(study);
  const std::optional<fits::StudyFit> fit = study::fit_runs(rows);
  study::save_law(study.folder, fit);
  return report_document(study, rows, fit);
}

Json make_table_document(const fs::path& table, const fits::PointSelection& selection) {
  const std::vector<fits::RunPoint> points = fits::read_run_points(table, selection);
  Json runs = Json::array();
  for (const RunRow& row : study::rows_of_points(points)) runs.push_back(study::row_json(row));
  const fits::StudyFit fit = fits::fit_study(points);
  return {{"schema", kReportSchema},
          {"title", table.stem().string()},
          {"created", now_text()},
          {"question", "What do these runs say about depth and width?"},
          {"answer", fit.answer},
          {"spec", nullptr},
          {"versions", program_versions()},
          {"runs", runs},
          {"curves", Json::array()},
          {"fit", fits::to_json(fit)},
          {"published", published_json()}};
}

Json read_report_document(const fs::path& path) {
  const std::string origin = path.string();
  Json document = parse_json(read_text_file(path, kMostDocumentBytes), origin);
  if (!document.is_object()) {
    throw DataError(fmt::format("{}: a report document is a JSON object", origin));
  }
  const Json schema = document.value("schema", Json());
  const std::string name = schema.is_string() ? schema.get<std::string>() : "";
  if (name != kReportSchema) {
    throw DataError(fmt::format("{}: schema is '{}', but this program reads '{}'", origin,
                                printable(name), kReportSchema));
  }
  return document;
}

}  // namespace fathom::report
