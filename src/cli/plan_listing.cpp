#include "cli/plan_listing.h"

#include <fmt/format.h>

#include "cli/json_output.h"
#include "core/text.h"
#include "core/units.h"
#include "engine/plan/plan_rows.h"
#include "terminal/table.h"

namespace fathom {
namespace {

using engine::PlanRow;
using engine::Program;

constexpr std::array kPrograms{Program::train, Program::update};

double arena_bytes(const model::Transformer& model) {
  return static_cast<double>(model.plan.storage_bytes(engine::Storage::activation));
}

void print_text(Session& session, const model::Transformer& model) {
  session.out << session.terminal.plain(
      fmt::format("{}  {} x {}, offers: {}, activations in {}\n",
                  session.terminal.accent("fathom bench train --print-plan"), model.spec.layers,
                  model.spec.width, model.plan.offers().name, format_bytes(arena_bytes(model))));
  for (const Program program : kPrograms) {
    Table table({{"", Align::right},
                 {"op"},
                 {"lane"},
                 {"GFLOP", Align::right},
                 {"bytes", Align::right},
                 {"reads -> writes"}});
    std::size_t number = 0;
    for (const PlanRow& row : rows_of(model.plan, program)) {
      table.add_row({std::to_string(number++), row.op, name_of(row.lane),
                     row.flops > 0 ? fmt::format("{:.2f}", row.flops / 1e9) : "",
                     format_bytes(row.bytes),
                     join(row.reads, ", ") + " -> " + join(row.writes, ", ")});
    }
    session.out << "\n" << name_of(program) << "\n" << table.render(session.terminal);
  }
}

Json to_json(const model::Transformer& model) {
  Json document;
  document["layers"] = model.spec.layers;
  document["width"] = model.spec.width;
  document["offers"] = model.plan.offers().name;
  document["activation_bytes"] = arena_bytes(model);
  for (const Program program : kPrograms) {
    for (const PlanRow& row : rows_of(model.plan, program)) {
      document[name_of(program)].push_back({{"op", row.op},
                                            {"lane", name_of(row.lane)},
                                            {"flops", row.flops},
                                            {"bytes", row.bytes},
                                            {"reads", row.reads},
                                            {"writes", row.writes}});
    }
  }
  return document;
}

}  // namespace

void print_plans(Session& session,
                 const std::vector<std::unique_ptr<const model::Transformer>>& models, bool json) {
  if (!json) {
    for (const auto& model : models) print_text(session, *model);
    return;
  }
  Json document = json_document("bench_plan");
  for (const auto& model : models) document["shapes"].push_back(to_json(*model));
  print_json(session, document);
}

}  // namespace fathom
