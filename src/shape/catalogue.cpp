#include "shape/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>

#include "core/counts.h"
#include "core/csv.h"
#include "core/error.h"
#include "core/text.h"
#include "core/toml_reader.h"
#include "shape/parameters.h"

namespace fathom {

namespace embedded {
extern const std::string_view model_shapes_csv;
extern const std::string_view mixtures_toml;
}  // namespace embedded

namespace {

/// Lower-case letters and digits only, so that "Llama-2-7b" and "llama 2 7B" are one name; a point
/// between digits stays when `points` are kept.
std::string normalise(std::string_view name, bool points) {
  std::string key;
  const auto digit = [&](std::size_t i) {
    return i < name.size() && std::isdigit(static_cast<unsigned char>(name[i]));
  };
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto byte = static_cast<unsigned char>(name[i]);
    if (std::isalnum(byte)) key += static_cast<char>(std::tolower(byte));
    if (points && name[i] == '.' && i > 0 && digit(i - 1) && digit(i + 1)) key += '.';
  }
  return key;
}

/// "Mistral-7B-v0.1" of "mistralai/Mistral-7B-v0.1"; for some, hubs repeat the maker's name in
/// front: "meta-llama/Meta-Llama-3-8B".
std::string without_owner(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  std::string rest = slash == std::string::npos ? name : name.substr(slash + 1);
  if (slash != std::string::npos && to_lower(rest).starts_with("meta-")) rest = rest.substr(5);
  return rest;
}

const CatalogueEntry* only_match(const std::function<bool(const std::string&)>& same) {
  const CatalogueEntry* found = nullptr;
  for (const CatalogueEntry& entry : catalogue()) {
    if (!same(entry.name) && (entry.alias.empty() || !same(entry.alias))) continue;
    if (found != nullptr) return nullptr;
    found = &entry;
  }
  return found;
}

const CatalogueEntry* exact_match(const std::string& name) {
  const std::string lower = to_lower(name);
  if (const auto* entry = only_match([&](const std::string& n) { return to_lower(n) == lower; })) {
    return entry;
  }
  const std::string key = normalise(name, true);
  return only_match([&](const std::string& n) { return normalise(n, true) == key; });
}

/// The structured part of a mixture, from mixtures.toml.
void add_mixture(TomlReader table, Shape& shape) {
  Experts& experts = shape.experts;
  experts.routed = table.integer("experts", 0);
  experts.active = table.integer("active", 0);
  experts.ffn = table.integer("expert_ffn", 0);
  experts.shared_ffn = table.integer("shared_ffn", 0);
  experts.dense_layers = table.integer("dense_layers", 0);
  experts.shared_gate = table.boolean("shared_gate", false);
  experts.router_bias = table.boolean("router_bias", false);
  experts.expert_bias = table.boolean("expert_bias", false);
  LatentAttention& latent = shape.latent;
  latent.kv_rank = table.integer("kv_rank", 0);
  latent.q_rank = table.integer("q_rank", 0);
  latent.rope_size = table.integer("rope_size", 0);
  latent.value_size = table.integer("value_size", 0);
  table.finish();
}

void add_mixtures(std::vector<CatalogueEntry>& entries) {
  TomlReader file = TomlReader::from_text(embedded::mixtures_toml, "mixtures.toml");
  for (CatalogueEntry& entry : entries) {
    if (entry.kind == "decoder MoE") add_mixture(file.table(entry.name), entry.shape);
  }
  file.finish();
}

Conventions conventions_of(const std::string& name, bool gated) {
  return find_conventions(!name.empty() ? name : gated ? "assumed-gated" : "assumed-plain");
}

CatalogueEntry read_entry(const CsvTable& table, std::size_t row) {
  const auto whole = [&](const char* column) {
    return static_cast<std::int64_t>(table.number(row, column));
  };
  CatalogueEntry entry;
  entry.name = table.cell(row, "name");
  entry.alias = table.cell(row, "alias");
  entry.organisation = table.cell(row, "org");
  entry.year = static_cast<int>(whole("year"));
  entry.kind = table.cell(row, "kind");
  entry.nominal_size = table.cell(row, "nominal_params");
  entry.stated_total = table.number(row, "total_params_m_computed") * 1e6;
  entry.tokens = table.number(row, "tokens_b") * 1e9;
  entry.tokens_provenance = table.cell(row, "tokens_provenance");
  entry.source = table.cell(row, "source");
  entry.note = table.cell(row, "note");
  Shape& shape = entry.shape;
  shape.layers = whole("n_layers");
  shape.width = whole("d_model");
  shape.heads = whole("n_heads");
  shape.kv_heads = whole("n_kv_heads");
  shape.head_size = whole("head_dim");
  shape.ffn = whole("d_ff");
  shape.ffn_matrices = whole("ffn_matrices");
  shape.vocab = whole("vocab");
  shape.context_known = !table.cell(row, "context").empty();
  shape.context = shape.context_known ? whole("context") : kDefaultContext;
  shape.tied = table.cell(row, "tied_embeddings") != "no";  // unknown: counted once
  shape.conventions = conventions_of(table.cell(row, "conventions"), shape.gated());
  return entry;
}

}  // namespace

bool CatalogueEntry::chinchilla_sweep() const {
  return name.starts_with("Chinchilla sweep");
}

bool CatalogueEntry::sweep_member() const {
  return chinchilla_sweep() || name.starts_with("Gemstone");
}

const std::vector<CatalogueEntry>& catalogue() {
  static const std::vector<CatalogueEntry> entries = [] {
    const CsvTable table(embedded::model_shapes_csv, "model_shapes.csv");
    std::vector<CatalogueEntry> list;
    for (std::size_t row = 0; row < table.size(); ++row) list.push_back(read_entry(table, row));
    add_mixtures(list);
    return list;
  }();
  return entries;
}

PublishedMatch match_published(const std::string& name) {
  if (const CatalogueEntry* entry = exact_match(name)) return {entry, true};
  const std::string rest = without_owner(name);
  if (rest != name) {
    if (const CatalogueEntry* entry = exact_match(rest)) return {entry, true};
  }
  const std::string key = normalise(rest, false);
  const std::string lower = to_lower(rest);
  std::vector<const CatalogueEntry*> literal;  // contain the name as typed
  std::vector<const CatalogueEntry*> partial;  // contain it without punctuation
  std::vector<std::string> names;
  for (const CatalogueEntry& entry : catalogue()) {
    const std::string own = normalise(entry.name, false);
    if (own == key) return {&entry, false};
    if (!key.empty() && own.find(key) != std::string::npos) {
      partial.push_back(&entry);
      if (to_lower(entry.name).find(lower) != std::string::npos) literal.push_back(&entry);
    }
    names.push_back(entry.name);
  }
  if (literal.size() == 1) return {literal.front(), false};
  if (partial.size() == 1) return {partial.front(), false};
  if (partial.size() > 1) {
    std::vector<std::string> found;
    for (std::size_t i = 0; i < std::min<std::size_t>(partial.size(), 6); ++i) {
      found.push_back(partial[i]->name);
    }
    throw ConfigError(fmt::format("'{}' names {} published models: {}{}", name, partial.size(),
                                  join(found, ", "), partial.size() > 6 ? ", …" : ""));
  }
  throw ConfigError(
      fmt::format("'{}' is neither LAYERSxWIDTH, nor a config.json, nor a published model.{} "
                  "'fathom shape list' shows them.",
                  name, did_you_mean(rest, names)));
}

const CatalogueEntry& find_published(const std::string& name) {
  return *match_published(name).entry;
}

std::vector<const CatalogueEntry*> search_catalogue(const std::string& query) {
  std::vector<const CatalogueEntry*> found;
  for (const CatalogueEntry& entry : catalogue()) {
    const std::string text = to_lower(entry.name + " " + entry.organisation + " " + entry.kind);
    bool all = true;
    for (const std::string& word : split(to_lower(query), ' ')) {
      all = all && text.find(word) != std::string::npos;
    }
    if (all) found.push_back(&entry);
  }
  return found;
}

std::vector<const CatalogueEntry*> nearest_published(double non_embedding, double layers,
                                                     std::size_t count) {
  std::vector<std::pair<double, const CatalogueEntry*>> ranked;
  for (const CatalogueEntry& entry : catalogue()) {
    if (!entry.dense_decoder() || entry.sweep_member()) continue;
    const double size = as_double(count_parameters(entry.shape).non_embedding());
    const double by_size = std::log(size / non_embedding);
    const double by_depth = std::log(as_double(entry.shape.layers) / layers);
    ranked.emplace_back(by_size * by_size + 0.25 * by_depth * by_depth, &entry);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<const CatalogueEntry*> nearest;
  for (std::size_t i = 0; i < std::min(count, ranked.size()); ++i) {
    nearest.push_back(ranked[i].second);
  }
  return nearest;
}

std::optional<PublishedDepths> published_depths(double non_embedding) {
  constexpr double kSizeFactor = 1.3;
  constexpr std::size_t kFewest = 5;
  std::vector<std::int64_t> depths;
  for (const CatalogueEntry& entry : catalogue()) {
    if (!entry.dense_decoder() || entry.sweep_member()) continue;
    const double size = as_double(count_parameters(entry.shape).non_embedding());
    if (std::fabs(std::log(size / non_embedding)) <= std::log(kSizeFactor)) {
      depths.push_back(entry.shape.layers);
    }
  }
  if (depths.size() < kFewest) return std::nullopt;
  std::sort(depths.begin(), depths.end());
  const std::size_t tail = depths.size() / 10;
  return PublishedDepths{depths[tail], depths[depths.size() - 1 - tail], depths.size()};
}

}  // namespace fathom
