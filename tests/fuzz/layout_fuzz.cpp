// Any bytes either read as the config.json of a family, with a layout whose parts fit together, or
// throw an error of one line.
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json_text.h"
#include "pretrained/families.h"

namespace {

void check(const fathom::pretrained::Layout& layout) {
  using namespace fathom::pretrained;
  if (layout.layers.empty() || layout.heads % layout.key_heads != 0) std::abort();
  for (const LayerLayout& layer : layout.layers) {
    if (layer.rotary >= static_cast<int>(layout.rotary.size()) || !std::isfinite(layer.scale)) {
      std::abort();
    }
  }
  for (const RotarySpec& spec : layout.rotary) {
    if (spec.size > layout.head_size) std::abort();
    if (spec.size > 1024) continue;
    for (const std::int64_t tokens : {1, 100}) rotary_table(spec, tokens);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fathom;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const nlohmann::json config = parse_json(text, "fuzz");
    if (!config.is_object()) return 0;
    const auto type = config.find("model_type");
    if (type == config.end() || !type->is_string()) return 0;
    check(pretrained::read_layout(pretrained::find_family(*type, "fuzz"), config, "fuzz"));
  } catch (const Error& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
