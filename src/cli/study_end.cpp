#include "cli/study_end.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/json_output.h"
#include "core/counts.h"
#include "core/text.h"
#include "core/units.h"
#include "study/design_text.h"
#include "study/fit.h"
#include "study/repetition.h"
#include "study/study_rows.h"

namespace fathom {
namespace {

/// What the finished runs say together.
struct StudyFindings {
  std::optional<fits::RunPoint> best;  // the least loss
  std::optional<fits::StudyFit> fit;
};

StudyFindings find_out(const study::Study& study) {
  const auto rows = study::collect_rows(study);
  StudyFindings found;
  for (const fits::RunPoint& point : study::points_of(rows)) {
    if (!found.best || point.loss < found.best->loss) found.best = point;
  }
  found.fit = study::fit_runs(rows, {}, {});
  study::save_law(study.folder, found.fit);
  return found;
}

Json best_json(const std::optional<fits::RunPoint>& best) {
  if (!best) return nullptr;
  return {{"id", best->id},         {"layers", best->layers}, {"width", best->width},
          {"params", best->params}, {"tokens", best->tokens}, {"loss", best->loss}};
}

void print_findings(Session& session, const study::Study& study, const StudyFindings& found) {
  if (!found.best) return;
  session.out << fmt::format("\n  best     {} x {}: loss {:.4f} with {} parameters, {} tokens\n",
                             found.best->layers, found.best->width, found.best->loss,
                             format_count(found.best->params), format_count(found.best->tokens));
  std::string label = "  decided  ";
  for (const std::string& line : wrap(found.fit->answer.front(), 80 - label.size())) {
    session.out << label << line << "\n";
    label = std::string(label.size(), ' ');
  }
  const std::string name = study.folder.name();
  session.out << fmt::format("  next     fathom study report {}   one page with charts\n", name);
  if (found.fit->has_law()) {
    session.out << fmt::format("           fathom plan {} --law study:{}\n",
                               format_count(found.best->params), name);
  } else {
    session.out << fmt::format("           fathom study fit {}      why there is no law yet\n",
                               name);
  }
}

}  // namespace

void print_study_end(Session& session, const study::Study& study, const study::RoundsResult& result,
                     bool json) {
  const StudyFindings found = result.runs.stopped ? StudyFindings{} : find_out(study);
  if (json) {
    Json document = json_document("study_run");
    document["directory"] = study.folder.name();
    document["runs"] = study.runs.size();
    document["done"] = result.runs.done;
    document["failed"] = result.runs.failed;
    document["stopped"] = result.runs.stopped;
    document["best"] = best_json(found.best);
    document["answer"] = found.fit ? Json(found.fit->answer) : Json::array();
    if (result.end) document["design"] = study::design_json(*result.end, *study.spec.design);
    return print_json(session, document);
  }
  session.out << fmt::format("{}  {}  {} of {} runs done\n",
                             session.terminal.accent("fathom study run"), study.folder.name(),
                             result.runs.done, study.runs.size());
  if (result.end) {
    for (const std::string& line : study::design_lines(*result.end, *study.spec.design)) {
      session.out << "  " << line << "\n";
    }
  }
  print_findings(session, study, found);
}

std::string longest_repetition(const std::vector<study::PlannedRun>& runs,
                               const std::optional<study::TokenFacts>& tokens) {
  if (!tokens) return "";
  std::int64_t longest = 0;
  for (const study::PlannedRun& run : runs) {
    longest = std::max(longest, static_cast<std::int64_t>(run.tokens));
  }
  return study::repetition_note(longest, tokens->training_tokens);
}

}  // namespace fathom
