#include "cli/probe_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "core/units.h"
#include "terminal/table.h"

namespace fathom {
namespace {

using probe::Cost;
using probe::Curves;
using probe::HeadResult;
using probe::HeadRole;
using probe::LayerResult;
using probe::ProbeResult;

std::string nats_text(double value) {
  if (!std::isfinite(value)) return "-";
  return std::abs(value) >= 10 ? fmt::format("{:.2f}", value) : fmt::format("{:.4f}", value);
}

std::string with_reach(const Cost& cost) {
  const double reach = (cost.high - cost.low) / 2;
  return std::isfinite(reach) ? fmt::format("{} ± {}", nats_text(cost.mean), nats_text(reach))
                              : nats_text(cost.mean);
}

/// A bar on a logarithmic axis from 0.001 to 10 nats.
std::string cost_bar(double cost) {
  constexpr double kDecades = 4;
  constexpr int kWidth = 16;
  if (!(cost > 0.001)) return "";
  const double share = std::clamp((std::log10(cost) + 3) / kDecades, 0.0, 1.0);
  return std::string(static_cast<std::size_t>(std::lround(share * kWidth)), '#');
}

std::string probe_layers_table(const ProbeResult& r, const Terminal& terminal) {
  Table table({{"layer", Align::right},
               {"influence", Align::right},
               {"removal, nats", Align::right},
               {"attention", Align::right},
               {"ffn", Align::right},
               {"class"},
               {"0.001 to 10 nats"}});
  for (const LayerResult& l : r.layers) {
    if (!r.has_loss) {
      table.add_row({fmt::format("{}", l.layer), fmt::format("{:.4f}", l.geometry.influence)});
      continue;
    }
    table.add_row({fmt::format("{}", l.layer), fmt::format("{:.4f}", l.geometry.influence),
                   with_reach(l.removal), nats_text(l.attention.mean), nats_text(l.ffn.mean),
                   name_of(l.cls), cost_bar(l.removal.mean)});
  }
  return table.render(terminal);
}

std::string cuts_table(const ProbeResult& r, const Terminal& terminal) {
  const Curves& c = r.curves;
  if (c.greedy.size() < 2) return "";
  Table table({{"kept", Align::right},
               {"greedy", Align::right},
               {"by influence", Align::right},
               {"last", Align::right},
               {"random", Align::right},
               {"greedy removes"}});
  const std::size_t step = std::max<std::size_t>(1, (c.greedy.size() - 1) / 4);
  for (std::size_t n = 0; n < c.greedy.size(); n += step) {
    double low = INFINITY, high = -INFINITY;
    for (const auto& curve : c.random) {
      low = std::min(low, curve[n].loss);
      high = std::max(high, curve[n].loss);
    }
    std::vector<std::int64_t> removed = c.greedy[n].removed;
    std::sort(removed.begin(), removed.end());
    table.add_row(
        {fmt::format("{}", c.greedy[n].kept), fmt::format("{:.3f}", c.greedy[n].loss),
         fmt::format("{:.3f}", c.by_influence[n].loss), fmt::format("{:.3f}", c.last[n].loss),
         fmt::format("{:.2f} to {:.2f}", low, high), fmt::format("{}", fmt::join(removed, " "))});
  }
  return fmt::format("\n  loss when layers are cut without retraining ({} tokens)\n\n",
                     format_whole(c.tokens)) +
         table.render(terminal);
}

std::string probe_heads_line(const ProbeResult& r) {
  if (r.heads.empty()) return "";
  std::string text = "\n  heads ";
  for (const HeadRole role : kEnumValues<HeadRole>) {
    const auto count = std::count_if(r.heads.begin(), r.heads.end(),
                                     [&](const HeadResult& h) { return h.role == role; });
    if (count > 0) text += fmt::format(" {} {},", count, name_of(role));
  }
  text.back() = '\n';
  return text;
}

}  // namespace

std::string render_probe(const ProbeResult& r, const Terminal& terminal) {
  std::string text =
      fmt::format("{}  {}: {} layers × {}, {} parameters ({})\n\n", terminal.accent("fathom probe"),
                  r.model.name, r.model.layers, r.model.width,
                  format_count(static_cast<double>(r.model.parameters)), r.model.family);
  for (const std::string& sentence : r.verdict) {
    for (const std::string& line : wrap(sentence, std::min<std::size_t>(terminal.width, 100) - 4)) {
      text += "  " + line + "\n";
    }
  }
  text += "\n";
  if (r.has_loss) {
    text += fmt::format("  measured  {} nats per token", with_reach(r.loss));
    if (r.bits_per_byte) text += fmt::format(", {:.3f} bits per byte", *r.bits_per_byte);
    text +=
        fmt::format(" on {} {}tokens of {} in {} window{}\n", format_whole(r.tokens),
                    r.model.causal ? "" : "masked ", r.text, r.windows, r.windows == 1 ? "" : "s");
    text +=
        fmt::format("            {}, because {}\n\n", format_seconds(r.seconds), r.stopped_because);
  }
  text += probe_layers_table(r, terminal);
  text += cuts_table(r, terminal);
  text += probe_heads_line(r);
  if (r.has_loss && std::isfinite(r.half_agreement)) {
    text += fmt::format(
        "\n  rank correlations: influence with cost {:.2f}; costs on two halves of the text "
        "{:.2f}\n",
        r.influence_agreement, r.half_agreement);
  }
  for (const std::string& note : r.notes) {
    for (const std::string& line : wrap(note, std::min<std::size_t>(terminal.width, 100) - 4)) {
      text += "  " + line + "\n";
    }
  }
  return terminal.plain(text);
}

}  // namespace fathom
