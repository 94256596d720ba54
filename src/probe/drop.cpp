#include "probe/drop.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>

#include "core/counts.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/safetensors.h"
#include "core/text.h"
#include "pretrained/families.h"
#include "probe/removals.h"

namespace fathom::probe {
namespace {

namespace fs = std::filesystem;
using Layers = std::vector<std::int64_t>;
using Config = nlohmann::json;

std::int64_t parse_layer(std::string_view text, std::int64_t depth) {
  std::int64_t layer = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), layer);
  if (error != std::errc() || end != text.data() + text.size() || layer < 0 || layer >= depth) {
    throw ConfigError(
        fmt::format("--drop: '{}' is not a layer from 0 to {}", printable(text), depth - 1));
  }
  return layer;
}

/// The layer a tensor belongs to, by "layers.{}." or whatever the family writes; -1: none.
struct LayerName {
  std::int64_t layer = -1;
  std::size_t begin = 0, end = 0;  // of the number
};
LayerName find_layer(const std::string& name, std::string_view pattern) {
  const std::string_view stem = pattern.substr(0, pattern.find("{}"));
  const std::size_t at = name.find(stem);
  if (at == name.npos || (at > 0 && name[at - 1] != '.')) return {};
  LayerName found;
  found.begin = at + stem.size();
  const char* first = name.data() + found.begin;
  const auto [end, error] = std::from_chars(first, name.data() + name.size(), found.layer);
  if (error != std::errc()) return {};
  found.end = found.begin + static_cast<std::size_t>(end - first);
  return found;
}

/// The tensor's name in the shallower model; empty when its layer is gone.
std::string new_name(const std::string& name, std::string_view pattern, const Layers& dropped) {
  const LayerName found = find_layer(name, pattern);
  if (found.layer < 0) return name;
  if (std::binary_search(dropped.begin(), dropped.end(), found.layer)) return "";
  const auto before = std::lower_bound(dropped.begin(), dropped.end(), found.layer);
  return name.substr(0, found.begin) + std::to_string(found.layer - (before - dropped.begin())) +
         name.substr(found.end);
}

void cut_list(Config& config, const char* key, const Layers& dropped) {
  const auto found = config.find(key);
  if (found == config.end() || !found->is_array()) return;
  Config kept = Config::array();
  for (std::size_t l = 0; l < found->size(); ++l) {
    if (!std::binary_search(dropped.begin(), dropped.end(), static_cast<std::int64_t>(l))) {
      kept.push_back((*found)[l]);
    }
  }
  *found = std::move(kept);
}

/// Makes the kind of each layer explicit where it followed from the layer's number.
void fix_config(Config& config, const pretrained::Family& family, const pretrained::Layout& layout,
                const Layers& dropped) {
  if (!dropped.empty() && config.value("scale_attn_by_inverse_layer_idx", false)) {
    throw ConfigError("attention scaled by the layer's number cannot be renumbered");
  }
  const bool numbered = family.windows == pretrained::WindowRule::even ||
                        family.windows == pretrained::WindowRule::pattern ||
                        family.windows == pretrained::WindowRule::from_layer;
  if (numbered && !config.contains("layer_types")) {
    Config types = Config::array();
    for (const pretrained::LayerLayout& layer : layout.layers) {
      types.push_back(layer.window > 0 ? "sliding_attention" : "full_attention");
    }
    config["layer_types"] = std::move(types);
  }
  if (family.type == "smollm3" && !config.contains("no_rope_layers")) {
    Config list = Config::array();
    for (const pretrained::LayerLayout& layer : layout.layers) list.push_back(layer.rotary >= 0);
    for (Config& each : list) each = each.get<bool>() ? 1 : 0;
    config["no_rope_layers"] = std::move(list);
  }
  cut_list(config, "layer_types", dropped);
  cut_list(config, "no_rope_layers", dropped);
  const std::int64_t left = layout.depth() - std::ssize(dropped);
  config[std::string(family.layers_key)] = left;
  if (config.contains("max_window_layers") && config["max_window_layers"].is_number_integer()) {
    config["max_window_layers"] = std::min(config["max_window_layers"].get<std::int64_t>(), left);
  }
}

struct Moved {
  std::string from, to;
};

std::vector<Moved> moves(const std::vector<std::string>& names, std::string_view pattern,
                         const Layers& dropped) {
  std::vector<Moved> list;
  for (const std::string& name : names) {
    std::string to = new_name(name, pattern, dropped);
    if (!to.empty()) list.push_back({name, std::move(to)});
  }
  return list;
}

void write_same_types(const fs::path& model, const std::vector<Moved>& list, const fs::path& file) {
  const SafetensorsModel source(model);
  std::vector<TensorSpec> specs;
  for (const Moved& each : list) {
    TensorSpec spec = source.at(each.from);
    spec.name = each.to;
    specs.push_back(std::move(spec));
  }
  SafetensorsWriter writer(file, specs, {{"format", "pt"}});
  for (const Moved& each : list) writer.write(each.to, source.at(each.from).bytes);
  writer.commit();
}

void write_f32(const pretrained::TensorSource& source, const std::vector<Moved>& list,
               const fs::path& file) {
  std::vector<TensorSpec> specs;
  for (const Moved& each : list)
    specs.push_back({each.to, TensorType::f32, *source.find(each.from)});
  SafetensorsWriter writer(file, specs, {{"format", "pt"}});
  for (std::size_t i = 0; i < list.size(); ++i) {
    std::size_t count = 1;
    for (const std::uint64_t size : specs[i].shape) count *= size;
    std::vector<float> values(count);
    source.read(list[i].from, values);
    writer.write(list[i].to, std::as_bytes(std::span(values)));
  }
  writer.commit();
}

void copy_companions(const fs::path& model, const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(model)) {
    const std::string name = entry.path().filename().string();
    const std::string extension = entry.path().extension().string();
    if (!entry.is_regular_file() || extension == ".safetensors" || name == "config.json" ||
        name == "model.safetensors.index.json") {
      continue;
    }
    if (extension == ".json" || extension == ".txt" || extension == ".model" ||
        extension == ".jinja") {
      fs::copy_file(entry.path(), folder / name, fs::copy_options::overwrite_existing);
    }
  }
}

/// A SentencePiece model is written under the name that transformers looks for.
void write_pieces(const data::Tokenizer& tokenizer, const fs::path& folder) {
  if (tokenizer.kind() != "sentencepiece") return;
  const fs::path own = folder / "fathom_tokenizer";
  fs::create_directories(own);
  tokenizer.save(own);
  fs::copy_file(own / "tokenizer.model", folder / "tokenizer.model",
                fs::copy_options::overwrite_existing);
  fs::remove_all(own);
}

}  // namespace

Layers parse_layers(const std::string& text, std::int64_t depth) {
  std::set<std::int64_t> layers;
  for (const std::string& part : split(text, ',')) {
    const std::size_t dash = part.find('-');
    const std::int64_t first = parse_layer(part.substr(0, dash), depth);
    const std::int64_t last = dash == part.npos ? first : parse_layer(part.substr(dash + 1), depth);
    for (std::int64_t l = first; l <= last; ++l) layers.insert(l);
  }
  if (std::ssize(layers) >= depth) throw ConfigError("--drop: no layer would be left");
  if (layers.empty()) throw ConfigError("--drop: name at least one layer");
  return {layers.begin(), layers.end()};
}

DropCost measure_drop(Sweep& sweep, std::span<const Window> windows, const Layers& dropped) {
  const Path whole = whole_path(sweep.weights().layout().depth());
  WindowSums before, after, both;
  sweep.run(windows, whole, {along(whole, path_without(whole, dropped))},
            [&](std::size_t w, const WindowStreams&, const WindowLosses& losses) {
              const double tokens = as_double(windows[w].target_count());
              const auto sum = [](const std::vector<float>& list) {
                return std::accumulate(list.begin(), list.end(), 0.0);
              };
              before.add(sum(losses.base), tokens);
              after.add(sum(losses.variants.front()), tokens);
              both.add(difference(losses.variants.front(), losses.base), tokens);
            });
  return {estimate(before), estimate(after), estimate(both)};
}

void write_pruned(const fs::path& model, const Layers& dropped, const fs::path& folder) {
  const pretrained::Checkpoint checkpoint = pretrained::open_checkpoint(model);
  Config config = *checkpoint.config;
  if (config.contains("text_config")) {
    throw ConfigError(fmt::format("{}: a model that also sees cannot be written", model.string()));
  }
  const pretrained::Family& family =
      pretrained::find_family(config.value("model_type", ""), checkpoint.origin);
  const pretrained::Layout layout = pretrained::read_layout(family, config, checkpoint.origin);
  if (fs::exists(folder) && fs::equivalent(folder, model)) {
    throw ConfigError(fmt::format("{}: is the model itself; give another folder", folder.string()));
  }
  fix_config(config, family, layout, dropped);
  fs::create_directories(folder);
  const std::vector<Moved> list = moves(checkpoint.tensors->names(), family.names.layer, dropped);
  if (fs::is_directory(model)) {
    write_same_types(model, list, folder / kModelTensors);
    copy_companions(model, folder);
  } else {
    if (checkpoint.gains_are_whole) {
      throw ConfigError(fmt::format(
          "{}: GGUF files of this family cannot be written as a folder yet", model.string()));
    }
    write_f32(*checkpoint.tensors, list, folder / kModelTensors);
    if (checkpoint.tokenizer) write_pieces(*checkpoint.tokenizer, folder);
    if (family.type == "llama") config["architectures"] = {"LlamaForCausalLM"};
  }
  write_file_atomically(folder / "config.json", config.dump(2) + "\n");
}

}  // namespace fathom::probe
