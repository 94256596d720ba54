#include <fmt/format.h>

#include <cmath>

#include "cli/plan_report.h"
#include "core/counts.h"
#include "core/units.h"
#include "terminal/chart.h"
#include "terminal/table.h"

namespace fathom {
namespace {

using namespace planner;
using laws::Evidence;

void print_head(Session& session, const Plan& plan) {
  const Terminal& terminal = session.terminal;
  const Shape& shape = plan.recommendation.shape;
  const std::string budget =
      plan.request.flops ? fmt::format("{:.3g} FLOPs: {} parameters", *plan.request.flops,
                                       format_count(plan.budget.parameters()))
                         : fmt::format("{} parameters", format_count(plan.budget.parameters()));
  session.out << terminal.plain(fmt::format(
      "{}  {} ({}), {} tokens{}\n\n", terminal.accent("fathom plan"), budget,
      plan.budget.description(), format_count(plan.tokens),

      plan.request.tokens ? "" : fmt::format(" at {:g} per parameter", kTokensPerParameter)));
  session.out << terminal.plain(fmt::format(
      "  {}   {} heads of {}, ffn {}{}{}\n",
      terminal.bold(fmt::format("{} layers × {} wide", shape.layers, shape.width)), shape.heads,
      shape.head_size, shape.ffn, shape.gated() ? " gated" : "",
      shape.kv_heads == shape.heads ? "" : fmt::format(", {} kv heads", shape.kv_heads)));
  session.out << terminal.plain(fmt::format(
      "  {} parameters in the blocks, {} with embeddings (vocabulary {}, {}); {:.3g} training "
      "FLOPs\n\n",
      format_whole(plan.parameters.non_embedding()), format_whole(plan.parameters.total()),
      format_whole(shape.vocab), shape.tied ? "tied" : "untied", plan.train_flops));
}

void print_statements(Session& session, const Plan& plan) {
  const Terminal& terminal = session.terminal;
  const auto print_wrapped = [&](const std::string& mark, const std::string& text) {
    std::string lead = mark;
    for (const std::string& line : wrap(text, terminal.width - 17)) {
      session.out << "  " << pad(lead, 14, Align::left) << " " << terminal.plain(line) << "\n";
      lead.clear();
    }
  };
  for (const Statement& statement : plan.statements) {
    print_wrapped(terminal.dim(to_string(statement.evidence)), statement.text);
  }
  for (const std::string& warning : plan.warnings) {
    print_wrapped(terminal.warning("warning"), warning);
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

/// Whole depths inside the band.
std::string band_text(const std::optional<Interval>& band) {
  if (!band) return "";
  const WholeDepths depths = whole_depths(*band);
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
               {"penalty", Align::right},
               {"status"}});
  for (const LawRow& row : plan.laws) {
    table.add_row({row.info.title, fmt::format("{:.1f}", row.optimum.layers),
                   fmt::format("{:.0f}", row.optimum.width),
                   fmt::format("{:.0f}", row.optimum.width / row.optimum.layers),
                   interval_text(row.optimum.layers_interval), band_text(row.band),
                   format_percent(row.penalty), to_string(row.evidence)});
  }
  session.out << table.render(session.terminal);
  session.out << session.terminal.plain(
      fmt::format("  penalty: loss of that depth under {}.\n", plan.loss_law.title));
}

void print_objectives(Session& session, const Plan& plan) {
  session.out << fmt::format("\n  By objective on {} (times modelled, one device)\n",
                             plan.hardware.title);
  Table table({{"objective"},
               {"shape", Align::right},
               {"loss", Align::right},
               {"tokens/s", Align::right},
               {"to equal loss", Align::right},
               {"decode/token", Align::right},
               {"chosen as"}});
  for (const ObjectiveRow& row : plan.objectives) {
    const Candidate& c = row.candidate;
    const bool chosen = row.objective == plan.request.objective;
    table.add_row(
        {(chosen ? "▲ " : "  ") + to_string(row.objective), depth_by_width(c.shape),
         format_percent(c.penalty), format_count(c.tokens_per_second),
         std::isfinite(c.seconds_to_equal_loss) ? format_seconds(c.seconds_to_equal_loss) : "never",
         format_seconds(c.decode_seconds), row.rule});
  }
  session.out << table.render(session.terminal);
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

}  // namespace

void print_plan_text(Session& session, const Plan& plan) {
  print_head(session, plan);
  print_statements(session, plan);
  print_picture(session, plan);
  print_laws(session, plan);
  print_objectives(session, plan);
  print_neighbours(session, plan);
  session.out << session.terminal.plain(fmt::format(
      "\n  Next: fathom shape {}x{} for every count, fathom plan … --emit hf-llama for a config.\n",
      plan.recommendation.shape.layers, plan.recommendation.shape.width));
}

}  // namespace fathom
