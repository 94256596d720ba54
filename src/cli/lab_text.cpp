#include <fmt/format.h>

#include <algorithm>

#include "cli/lab_commands.h"
#include "core/text.h"
#include "core/units.h"
#include "terminal/table.h"

namespace fathom {
namespace {

std::string measured_text(const lab::Measure& measure) {
  if (!measure.value) return "not measured";
  std::string text = fmt::format("{:.5g}", *measure.value);
  if (measure.interval) {
    text += fmt::format(" ({:.4g} to {:.4g})", measure.interval->low, measure.interval->high);
  }
  return text;
}

std::string paragraph(const std::string& text, const Terminal& terminal) {
  std::string out;
  for (const std::string& line : wrap(text, std::max<std::size_t>(terminal.width, 60) - 4)) {
    out += "  " + line + "\n";
  }
  return out;
}

/// "passes  exponent  3.52, must be 2.7 to 3.6", and what that is.
std::string criterion_text(const lab::JudgedCriterion& judged, const Terminal& terminal) {
  constexpr std::size_t kIndent = 10;
  const lab::Criterion& criterion = *judged.criterion;
  std::string text = fmt::format(
      "  {}{}  {}, must be {}\n", pad(to_string(judged.outcome), kIndent - 2, Align::left),
      terminal.bold(criterion.id), measured_text(judged.measure), criterion.range());
  const std::size_t room = std::max<std::size_t>(terminal.width, 60) - kIndent;
  for (const std::string& line : wrap(criterion.text, room)) {
    text += std::string(kIndent, ' ') + terminal.dim(line) + "\n";
  }
  return text;
}

/// Words in some cell: flush left, as on the page.
bool holds_words(const lab::ExhibitTable& exhibit, std::size_t column) {
  return std::any_of(exhibit.rows.begin(), exhibit.rows.end(), [&](const auto& row) {
    const std::string& cell = row[column];
    const bool number = cell.find_first_not_of("0123456789,.+-eE %>") == std::string::npos;
    return !number && cell != "-inf" && !cell.starts_with("at least ");
  });
}

std::string exhibit_text(const lab::ExhibitTable& exhibit, const Terminal& terminal) {
  std::vector<Table::Column> columns;
  for (std::size_t c = 0; c < exhibit.columns.size(); ++c) {
    const bool left = c == 0 || holds_words(exhibit, c);
    columns.push_back({exhibit.columns[c], left ? Align::left : Align::right});
  }
  Table table(columns);
  for (const auto& row : exhibit.rows) table.add_row(row);
  return "\n  " + exhibit.title + "\n" + table.render(terminal);
}

}  // namespace

std::string render_lab_result(const lab::LabResult& result, const Terminal& terminal) {
  const lab::Claim& claim = *result.claim;
  std::string text =
      fmt::format("{}  {}\n\n", terminal.accent("fathom lab run " + claim.id), claim.title);
  text += paragraph(claim.statement, terminal);
  const bool judged = !result.judgement.criteria.empty();
  text += fmt::format(
      "\n  {}{}\n",
      judged ? terminal.bold(to_string(result.judgement.verdict)) + ", by " + to_string(claim.by)
             : "no criterion of the claim applies to this set-up",
      result.setup.own     ? "  (this set-up)"
      : result.setup.quick ? "  (--quick)"
                           : "");
  if (!result.judgement.boundary.empty()) text += paragraph(result.judgement.boundary, terminal);
  if (result.judgement.verdict == lab::Verdict::undecided && judged && !claim.undecided.empty()) {
    text += paragraph("To decide: " + claim.undecided, terminal);
  }
  if (judged) text += "\n";
  for (const lab::JudgedCriterion& each : result.judgement.criteria) {
    text += criterion_text(each, terminal);
  }
  for (const lab::ExhibitTable& exhibit : result.conclusion.tables) {
    text += exhibit_text(exhibit, terminal);
  }
  for (const std::string& note : result.conclusion.notes) {
    text += "\n" + paragraph(note, terminal);
  }
  text += fmt::format("\n  {}{}\n", format_seconds(result.seconds),
                      result.resumed == 0 ? ""
                                          : fmt::format(", {} of {} parts from records",
                                                        result.resumed, result.parts));
  return terminal.plain(text);
}

std::string render_lab_summary(const std::vector<lab::LabResult>& results,
                               const Terminal& terminal) {
  Table table(
      {{"claim"}, {"verdict"}, {"committed"}, {"by"}, {"time", Align::right}, {"what is claimed"}});
  double seconds = 0;
  for (const lab::LabResult& result : results) {
    seconds += result.seconds;
    table.add_row({result.claim->id, to_string(result.judgement.verdict),
                   to_string(result.claim->finding.verdict), to_string(result.claim->by),
                   format_seconds(result.seconds), result.claim->title});
  }
  return terminal.plain(table.render(terminal) + fmt::format("\n  {} claims, {}\n", results.size(),
                                                             format_seconds(seconds)));
}

}  // namespace fathom
