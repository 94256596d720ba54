#include "cli/probe_comparison_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "terminal/table.h"

namespace fathom {
namespace {

std::string cell(const Json& value, int digits) {
  return value.is_number() ? fmt::format("{:.{}f}", value.get<double>(), digits) : "-";
}

/// Influence, cost and class of a layer; nothing where the model is shallower.
std::vector<std::string> layer_cells(const Json& probe, std::size_t layer) {
  const Json& layers = probe.at("layers");
  if (layer >= layers.size()) return {"", "", ""};
  const Json& own = layers[layer];
  return {cell(own.at("bi"), 4), cell(own.at("removal"), 4), own.at("class").get<std::string>()};
}

std::string headline(const char* letter, const Json& probe) {
  const Json& model = probe.at("model");
  return fmt::format("  {}  {}: {} layers × {}, {} nats per token on {} tokens of {}\n", letter,
                     model.at("name").get<std::string>(), model.at("layers").get<std::int64_t>(),
                     model.at("width").get<std::int64_t>(), cell(probe.at("loss"), 4),
                     probe.at("tokens").get<std::int64_t>(), probe.at("text").get<std::string>());
}

}  // namespace

std::string render_comparison(const Json& document, const Terminal& terminal) {
  const Json &a = document.at("a"), &b = document.at("b");
  std::string text = terminal.accent("fathom probe") + "  two models\n\n";
  text += headline("A", a) + headline("B", b) + "\n";
  for (const Json& sentence : document.at("sentences")) {
    for (const std::string& line :
         wrap(sentence.get<std::string>(), std::min<std::size_t>(terminal.width, 100) - 4)) {
      text += "  " + line + "\n";
    }
  }
  Table table({{"layer", Align::right},
               {"A influence", Align::right},
               {"A removal", Align::right},
               {"A class"},
               {"B influence", Align::right},
               {"B removal", Align::right},
               {"B class"}});
  const std::size_t most = std::max(a.at("layers").size(), b.at("layers").size());
  for (std::size_t layer = 0; layer < most; ++layer) {
    std::vector<std::string> row{fmt::format("{}", layer)};
    for (const Json* probe : {&a, &b}) {
      for (std::string& entry : layer_cells(*probe, layer)) row.push_back(std::move(entry));
    }
    table.add_row(row);
  }
  return terminal.plain(text + "\n" + table.render(terminal));
}

}  // namespace fathom
