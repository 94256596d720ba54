#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/plan_report.h"
#include "core/counts.h"
#include "core/text.h"
#include "core/units.h"
#include "shape/find_shape.h"
#include "terminal/chart.h"
#include "terminal/table.h"

namespace fathom {
namespace {

using namespace planner;
using laws::Evidence;

/// A mark, then text wrapped next to it.
void print_marked(Session& session, const std::string& mark, const std::string& text,
                  std::size_t width) {
  std::string lead = mark;
  for (const std::string& line : wrap(text, width - 17)) {
    session.out << "  " << pad(lead, 14, Align::left) << " " << session.terminal.plain(line)
                << "\n";
    lead.clear();
  }
}

void print_marked(Session& session, Evidence evidence, const std::string& text, std::size_t width) {
  print_marked(session, session.terminal.dim(to_string(evidence)), text, width);
}

void print_statements(Session& session, const Plan& plan) {
  for (const Statement& statement : plan.statements) {
    print_marked(session, statement.evidence, statement.text, session.terminal.width);
  }
}

void print_warnings(Session& session, const Plan& plan, std::size_t width) {
  for (const std::string& warning : plan.warnings) {
    print_marked(session, session.terminal.warning("note"), warning, width);
  }
}

/// Penalty against depth on a logarithmic axis, the band drawn heavy, the laws as letters.
void print_picture(Session& session, const Plan& plan) {
  Chart chart;
  double highest = 0;
  for (const PenaltyPoint& point : plan.curve) {
    chart.line.push_back({point.layers, 100 * point.penalty});
    highest = std::max(highest, 100 * point.penalty);
  }
  chart.log_x = true;
  chart.y_max =
      std::min(highest, std::max(600 * plan.request.tolerance, 120 * plan.recommendation.penalty));
  chart.y_format = "+{:.1f} %";
  chart.shade_low = plan.band.low;
  chart.shade_high = plan.band.high;
  chart.width = std::min<std::size_t>(72, session.terminal.width - 16);
  chart.markers.push_back({as_double(plan.recommendation.shape.layers), "▲ this plan"});
  session.out << session.terminal.plain(fmt::format(
      "\n  Loss penalty against depth at equal parameters ({}; heavy axis: within {:.2g} %)\n",
      plan.loss_law.title, 100 * plan.request.tolerance));
  session.out << render_chart(chart, session.terminal);
}

std::string interval_text(const std::optional<Interval>& interval) {
  if (!interval) return "";
  return fmt::format("{}–{}", format_significant(interval->low, 2),
                     format_significant(interval->high, 2));
}

/// Whole depths inside a law's band; where it has data, no farther than what it trained.
std::string band_text(const LawRow& row) {
  if (!row.band) return "";
  Interval band = *row.band;
  if (row.evidence == Evidence::fitted) {
    band = {std::max(band.low, row.info.layers.low), std::min(band.high, row.info.layers.high)};
  }
  const WholeDepths depths = whole_depths(band);
  return fmt::format("{}–{}", depths.low, depths.high);
}

void print_laws(Session& session, const Plan& plan) {
  session.out << "\n  All laws at this budget\n";
  Table table({{"law"},
               {"layers", Align::right},
               {"width", Align::right},
               {"d/L", Align::right},
               {"uncertainty", Align::right},
               {"own band", Align::right},
               {"loss", Align::right},
               {"vote", Align::right},
               {"status"}});
  for (const LawRow& row : plan.laws) {
    table.add_row(
        {row.info.title, fmt::format("{:.1f}", row.optimum.layers),
         fmt::format("{:.0f}", row.optimum.width),
         fmt::format("{:.0f}", row.optimum.width / row.optimum.layers),
         interval_text(row.optimum.layers_interval), band_text(row), format_percent(row.penalty),
         row.vote > 0 ? fmt::format("{:.0f} %", 100 * row.vote) : "", to_string(row.evidence)});
  }
  session.out << table.render(session.terminal);
  session.out << session.terminal.plain(
      fmt::format("  loss: of that depth under {}; vote: docs/counting.md.\n",
                  plan.law.name == laws::Consensus::kName ? "the consensus" : plan.loss_law.title));
}

/// What a row of the table of depths is: the pick, another objective's choice, an edge.
std::string role_of(const Plan& plan, const Candidate& candidate) {
  std::vector<std::string> roles;
  const std::int64_t layers = candidate.shape.layers;
  for (const ObjectiveRow& row : plan.objectives) {
    if (row.candidate.shape.layers != layers) continue;
    roles.push_back((row.objective == plan.request.objective ? "▲ " : "") +
                    to_string(row.objective));
  }
  if (roles.empty() && layers < plan.recommendation.shape.layers) return "wider";
  if (roles.empty()) return "deeper";
  return join(roles, ", ");
}

/// Depths worth a row: both edges of the band, every objective's choice, and one halfway to each
/// edge.
std::vector<const Candidate*> telling_depths(const Plan& plan) {
  std::vector<std::int64_t> wanted;
  for (const ObjectiveRow& row : plan.objectives) wanted.push_back(row.candidate.shape.layers);
  const double pick = as_double(plan.recommendation.shape.layers);
  for (const auto& edge : {plan.verdict.wider, plan.verdict.deeper}) {
    if (!edge) continue;
    wanted.push_back(edge->shape.layers);
    if (wanted.size() > 5) continue;
    const double middle = std::sqrt(as_double(edge->shape.layers) * pick);
    const auto nearest = std::min_element(
        plan.lattice.begin(), plan.lattice.end(), [&](const Candidate& a, const Candidate& b) {
          const auto off = [&](const Candidate& c) {
            return std::fabs(std::log(as_double(c.shape.layers) / middle));
          };
          return off(a) < off(b);
        });
    wanted.push_back(nearest->shape.layers);
  }
  std::vector<const Candidate*> rows;
  for (const Candidate& candidate : plan.lattice) {
    if (std::find(wanted.begin(), wanted.end(), candidate.shape.layers) != wanted.end()) {
      rows.push_back(&candidate);
    }
  }
  return rows;
}

std::string gpu_hours(double seconds) {
  return format_count(seconds / 3600, 3) + " h";
}

void print_depths(Session& session, const Plan& plan) {
  Table table({{"shape", Align::right},
               {"heads", Align::right},
               {"loss", Align::right},
               {"train", Align::right},
               {"GPU time", Align::right},
               {"decode/token", Align::right},
               {"chosen by"}});
  for (const Candidate* c : telling_depths(plan)) {
    table.add_row(
        {depth_by_width(c->shape), fmt::format("{}", c->shape.heads), format_percent(c->penalty),
         format_seconds(c->train_seconds / as_double(plan.sharding.gpus)),
         gpu_hours(c->train_seconds), format_seconds(c->decode_seconds), role_of(plan, *c)});
  }
  session.out << "\n" << table.render(session.terminal);
  session.out << session.terminal.plain(fmt::format(
      "  loss over the best: {}; times: modelled, {}\n", to_string(plan.loss_law_evidence),
      plan.sharding.gpus == 1 ? "one " + plan.hardware.title
                              : fmt::format("{} × {}, no communication",
                                            format_whole(plan.sharding.gpus), plan.hardware.name)));
}

void print_neighbours(Session& session, const Plan& plan) {
  session.out << "\n  Published neighbours\n";
  Table table({{"model"},
               {"shape", Align::right},
               {"blocks", Align::right},
               {"heads", Align::right},
               {"d/L", Align::right}});
  for (const CatalogueEntry* entry : plan.neighbours) {
    const Shape& shape = entry->shape;
    table.add_row({entry->name, depth_by_width(shape),
                   format_count(as_double(count_parameters(shape).non_embedding())),
                   std::to_string(shape.heads),
                   fmt::format("{:.0f}", as_double(shape.width) / as_double(shape.layers))});
  }
  session.out << table.render(session.terminal);
}

void print_verdict(Session& session, const Plan& plan, std::size_t width) {
  const Terminal& terminal = session.terminal;
  const std::string budget =
      plan.request.flops ? fmt::format("{:.3g} FLOPs: {} parameters", *plan.request.flops,
                                       format_count(plan.budget.parameters()))
                         : fmt::format("{} parameters", format_count(plan.budget.parameters()));
  session.out << terminal.plain(
      fmt::format("{}  {} ({}), {} tokens\n\n", terminal.accent("fathom plan"), budget,
                  plan.budget.counts_embeddings() ? "with embeddings" : "without embeddings",
                  format_count(plan.tokens)));
  if (plan.refused) {
    const std::string why =
        fmt::format("Not planned with {}: {}. The published laws are used instead.",
                    plan.refused->info.name, join(plan.refused->reasons, "; "));
    for (const std::string& line : wrap(why, width - 2)) {
      session.out << "  " << terminal.plain(terminal.warning(line)) << "\n";
    }
    session.out << "\n";
  }
  const auto& sentences = plan.verdict.sentences;
  session.out << "  " << terminal.plain(terminal.bold(sentences.front())) << "\n";
  const std::vector<std::string> rest(sentences.begin() + 1, sentences.end());
  for (const std::string& line : wrap(join(rest, " "), width - 2)) {
    session.out << "  " << terminal.plain(line) << "\n";
  }
  session.out << "\n";
}

/// What supports the pick: counts, the laws that have data here and those that do not, practice.
void print_evidence(Session& session, const Plan& plan, std::size_t width) {
  print_marked(session, Evidence::exact,
               fmt::format("{} parameters in the blocks, {} with embeddings (vocabulary {}, {}); "
                           "{:.3g} training FLOPs",
                           format_whole(plan.parameters.non_embedding()),
                           format_whole(plan.parameters.total()),
                           format_whole(plan.recommendation.shape.vocab),
                           plan.recommendation.shape.tied ? "tied" : "untied", plan.train_flops),
               width);
  for (const LawRow& row : plan.laws) {
    if (!row.info.fitted) continue;
    std::string text = fmt::format("{}: {:.0f} layers", row.info.title, row.optimum.layers);
    if (row.band && row.evidence == Evidence::fitted) {
      text += fmt::format(", {} within {:.2g} %", band_text(row), 100 * plan.request.tolerance);
    } else if (row.optimum.layers_interval) {
      text += fmt::format(", {:.0f} to {:.0f}", row.optimum.layers_interval->low,
                          row.optimum.layers_interval->high);
    }
    if (row.vote > 0) text += fmt::format("; vote {:.0f} %", 100 * row.vote);
    if (!row.outside.empty()) text += "; " + row.outside;
    print_marked(session, row.evidence, text, width);
  }
  print_marked(session, Evidence::modelled, plan.memory, width);
  // The verdict itself mentions practice where the pick departs from it.
  if (const auto& practice = plan.verdict.practice; practice && !plan.verdict.leaves_practice) {
    print_marked(session, Evidence::convention,
                 fmt::format("{} published models of this size: {} to {} layers", practice->models,
                             practice->low, practice->high),
                 width);
  }
}

void print_next(Session& session, const Plan& plan) {
  session.out << session.terminal.plain(
      fmt::format("\n  Next  fathom plan … --long: all laws, a chart, neighbours; --emit: a "
                  "config\n        {}\n",
                  shape_command(plan.recommendation.shape)));
}

}  // namespace

void print_plan_verdict(Session& session, const Plan& plan) {
  const std::size_t width = std::min<std::size_t>(80, session.terminal.width);
  print_verdict(session, plan, width);
  print_evidence(session, plan, width);
  print_warnings(session, plan, width);
  print_depths(session, plan);
  print_next(session, plan);
}

void print_plan_text(Session& session, const Plan& plan) {
  print_verdict(session, plan, session.terminal.width);
  print_evidence(session, plan, session.terminal.width);
  print_statements(session, plan);
  print_warnings(session, plan, session.terminal.width);
  print_depths(session, plan);
  print_picture(session, plan);
  print_laws(session, plan);
  print_neighbours(session, plan);
  print_next(session, plan);
}

}  // namespace fathom
