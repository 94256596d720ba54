#include "cli/shape_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/shape_json.h"
#include "core/counts.h"
#include "core/units.h"
#include "terminal/table.h"

namespace fathom {
namespace {

using planner::LawPlace;
using planner::ShapeReport;

std::string place_text(const LawPlace& place) {
  const double difference = place.layers_deeper;
  if (std::fabs(difference) < 0.5) return "where the law puts it";
  const double layers = std::round(std::fabs(difference));
  return fmt::format("{:.0f} {} {} than the law", layers, layers == 1 ? "layer" : "layers",
                     difference > 0 ? "deeper" : "shallower");
}

/// "32 layers × 4096, 32 heads of 128 (8 kv), ffn 14336 gated, vocabulary 128,256, ..."
std::string describe(const Shape& s) {
  std::string text =
      fmt::format("{} layers × {}, {} heads of {}{}", s.layers, s.width, s.heads, s.head_size,
                  s.kv_heads == s.heads ? "" : fmt::format(" ({} kv)", s.kv_heads));
  if (s.latent_attention()) text += fmt::format(" over a latent of {}", s.latent.kv_rank);
  if (s.mixture()) {
    text += fmt::format(", {} experts of {}{}, {} per token", s.experts.routed, s.experts.ffn,
                        s.gated() ? " gated" : "", s.experts.active);
    if (s.experts.shared_ffn > 0) text += fmt::format(", shared {}", s.experts.shared_ffn);
    if (s.experts.dense_layers > 0) {
      text += fmt::format(", {} dense layer{} of {}", s.experts.dense_layers,
                          s.experts.dense_layers == 1 ? "" : "s", s.ffn);
    }
  } else {
    text += fmt::format(", ffn {}{}", s.ffn, s.gated() ? " gated" : "");
  }
  return text + fmt::format(", vocabulary {}, context {}, {}", format_whole(s.vocab),
                            s.context_known
                                ? format_whole(s.context)
                                : fmt::format("unknown (counted at {})", format_whole(s.context)),
                            s.tied ? "tied" : "untied");
}

void print_counts(Session& session, const ShapeReport& r) {
  Table table({{"parameters"}, {"", Align::right}, {""}});
  const ParameterCount& p = r.parameters;
  const auto add = [&](const char* name, std::int64_t value, const std::string& note = "") {
    table.add_row({name, format_whole(value), note});
  };
  add("total", p.total(),
      r.subject.shape.conventions.assumed ? "norms and biases assumed" : "exact");
  if (r.subject.shape.mixture()) add("active per token", p.active(), "the experts it visits");
  add("without embeddings", p.non_embedding());
  add("12·L·d²", p.paper_12Ld2, "the papers' shorthand");
  add("attention", p.attention_matrices);
  add("feed-forward", p.ffn_matrices);
  if (p.router > 0) add("router", p.router);
  add("embedding", p.embedding, r.subject.shape.tied ? "tied: also the head" : "");
  if (p.head > 0) add("head", p.head);
  if (p.positions > 0) add("learned positions", p.positions);
  add("norms", p.norms);
  add("biases", p.biases);
  session.out << table.render(session.terminal);
}

void print_costs(Session& session, const ShapeReport& r) {
  Table table({{"cost"}, {"", Align::right}, {""}});
  table.add_row(
      {"training FLOPs per token", format_significant(r.flops.train_per_token, 4),
       fmt::format("6N gives {}; attention {:.1f} % at context {}",
                   format_significant(r.flops.six_n_per_token, 4), 100 * r.flops.attention_share,
                   format_whole(r.subject.shape.context))});
  table.add_row(
      {"inference FLOPs per token", format_significant(r.flops.forward_per_token, 4), ""});
  table.add_row({"weights, gradients, AdamW", format_bytes(r.memory.state()),
                 fmt::format("{:g} bytes per parameter", kTrainingBytesPerParameter)});
  table.add_row({"activations", format_bytes(r.memory.activations),
                 fmt::format("{} tokens; {} with full recomputation", format_whole(r.step_tokens),
                             format_bytes(r.memory.activations_recompute))});
  table.add_row({"logits", format_bytes(r.memory.logits), "fp32, whole"});
  table.add_row({"KV cache per token", format_bytes(r.kv_bytes_per_token), "bf16"});
  table.add_row({"KV cache, full", format_bytes(r.kv_bytes),
                 fmt::format("{} × {} tokens", format_whole(r.batch),
                             format_whole(r.subject.shape.context))});
  session.out << "\n" << table.render(session.terminal);
}

void print_times(Session& session, const ShapeReport& r) {
  Table table({{"modelled on " + r.hardware.title}, {"", Align::right}, {""}});
  const double total = r.step.total();
  table.add_row(
      {"training step", format_seconds(total),
       fmt::format(
           "{:.0f} % of peak; products {:.0f} %, attention {:.0f} %, memory {:.0f} %, "
           "fixed {:.0f} %",
           100 * r.share_of_peak, 100 * r.step.matmul / total, 100 * r.step.attention / total,
           100 * (r.step.memory_passes + r.step.optimizer) / total, 100 * r.step.fixed / total)});
  table.add_row({"tile and wave efficiency",
                 fmt::format("{:.0f} %", 100 * r.step.matmul_efficiency),
                 "of all matrix products, weighted by work"});
  table.add_row({"decode one token", format_seconds(r.decode.total()),
                 fmt::format("{} at this width sets latency (crossover {:.0f})",
                             r.depth_sets_latency() ? "depth" : "weight traffic",
                             r.latency_crossover_width)});
  session.out << "\n" << table.render(session.terminal);
}

void print_places(Session& session, const ShapeReport& r) {
  Table table({{"law at this 12·L·d²"},
               {"layers", Align::right},
               {"width", Align::right},
               {"this shape is"},
               {"status"}});
  for (const LawPlace& place : r.places) {
    table.add_row({place.info.title, fmt::format("{:.1f}", place.optimum.layers),
                   fmt::format("{:.0f}", place.optimum.width), place_text(place),
                   to_string(place.evidence)});
  }
  session.out << "\n" << table.render(session.terminal);
  session.out << session.terminal.plain(
      fmt::format("  Levine's transition width at {} layers is {:.0f}: depth {} at width {}.\n",
                  r.subject.shape.layers, r.transition_width,
                  r.depth_pays() ? "pays" : "does not pay yet", r.subject.shape.width));
}

}  // namespace

void print_shape_text(Session& session, const ShapeReport& r) {
  if (!r.subject.note.empty()) session.out << session.terminal.warning(r.subject.note) << "\n";
  session.out << session.terminal.plain(fmt::format("{}  {}: {}\n\n",
                                                    session.terminal.accent("fathom shape"),
                                                    r.subject.name, describe(r.subject.shape)));
  if (r.subject.published) {
    session.out << "  source: " << r.subject.published->source << "\n\n";
  }
  print_counts(session, r);
  print_costs(session, r);
  print_times(session, r);
  print_places(session, r);
  session.out << "\n";
  print_catalogue(session, r.neighbours, false);
}

void print_shape_json(Session& session, const ShapeReport& r) {
  Json document = json_document("shape");
  document.update(shape_report_json(r));
  print_json(session, document);
}

void print_catalogue(Session& session, const std::vector<const CatalogueEntry*>& entries,
                     bool json) {
  if (json) {
    Json document = json_document("shape_list");
    document["shapes"] = Json::array();
    for (const CatalogueEntry* entry : entries) {
      Json row = shape_json(entry->shape);
      row["name"] = entry->name;
      row["organisation"] = entry->organisation;
      row["kind"] = entry->kind;
      row["nominal_size"] = entry->nominal_size;
      row["source"] = entry->source;
      row["tokens"] = entry->tokens > 0 ? whole_number(entry->tokens) : Json(nullptr);
      if (entry->countable()) row["parameters"] = parameters_json(count_parameters(entry->shape));
      document["shapes"].push_back(row);
    }
    print_json(session, document);
    return;
  }
  Table table({{"published"},
               {"by"},
               {"kind"},
               {"layers", Align::right},
               {"width", Align::right},
               {"heads", Align::right},
               {"d/L", Align::right},
               {"blocks", Align::right},
               {"total", Align::right}});
  for (const CatalogueEntry* entry : entries) {
    const Shape& s = entry->shape;
    const ParameterCount p = count_parameters(s);
    table.add_row({entry->name, entry->organisation, entry->kind, std::to_string(s.layers),
                   std::to_string(s.width), std::to_string(s.heads),
                   fmt::format("{:.0f}", as_double(s.width) / as_double(s.layers)),
                   entry->countable() ? format_count(as_double(p.non_embedding())) : "",
                   !entry->countable() ? entry->nominal_size
                   : entry->shape.mixture()
                       ? fmt::format("{}, {} active", format_count(as_double(p.total())),
                                     format_count(as_double(p.active())))
                       : format_count(as_double(p.total()))});
  }
  if (table.empty()) {
    session.out << "  nothing in the catalogue matches\n";
  } else {
    session.out << table.render(session.terminal);
  }
}

std::vector<std::string> published_names() {
  std::vector<std::string> names;
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.name.find('(') != std::string::npos) continue;  // shells would run what is inside
    names.push_back(entry.name);
    std::replace(names.back().begin(), names.back().end(), ' ', '-');
  }
  return names;
}

}  // namespace fathom
