#include "study/study_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/counts.h"
#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "core/toml_file.h"
#include "core/units.h"
#include "model/spec_toml.h"

namespace fathom::study {
namespace {

CorpusChoice read_corpus(TomlReader table) {
  CorpusChoice corpus;
  read_keys(table, corpus);
  if (corpus.path.empty()) {
    table.fail("path", "is missing; name a file, a folder or 'sotu', or give --corpus");
  }
  if (corpus.path == "-") table.fail("path", "cannot be a stream: a study reads it again");
  if (!corpus.valid_from.empty()) {
    if (table.has("valid")) {
      table.fail("valid", "cannot be combined with valid_from; give one of them");
    }
    corpus.split.valid = 0;
  }
  if (!corpus.test_from.empty()) {
    if (table.has("test")) {
      table.fail("test", "cannot be combined with test_from; give one of them");
    }
    corpus.split.test = 0;
  }
  check(corpus.split);
  check(corpus.tokenizer);
  table.finish();
  return corpus;
}

Budget read_budget(TomlReader table) {
  Budget budget;
  read_keys(table, budget);
  std::sort(budget.tokens.begin(), budget.tokens.end());
  budget.tokens.erase(std::unique(budget.tokens.begin(), budget.tokens.end()), budget.tokens.end());
  if (budget.tokens.empty() == (budget.tokens_per_parameter <= 0)) {
    table.fail("tokens", "or tokens_per_parameter is needed, and not both");
  }
  if (budget.warmup_share == 1) table.fail("warmup_share", "must lie in [0, 1)");
  table.finish();
  return budget;
}

Seeds read_seeds(TomlReader table) {
  Seeds seeds;
  read_keys(table, seeds);
  if (seeds.extra_between.size() != (seeds.extra.empty() ? 0 : 2)) {
    table.fail("extra_between", "must be two sizes, [\"1M\", \"8M\"], and needs extra");
  }
  table.finish();
  if (seeds.all.empty()) table.fail("all", "must name at least one seed");
  return seeds;
}

void refuse(TomlReader& file, const char* table_name, const std::vector<const char*>& keys,
            const char* why) {
  TomlReader table = file.table(table_name);
  for (const char* key : keys) {
    if (table.has(key)) table.fail(key, why);
  }
}

}  // namespace

std::string CorpusChoice::summary() const {
  const std::string field = documents.text_field.empty() ? "" : " of " + documents.text_field;
  return fmt::format("documents {}{}, valid {}, test {}, split seed {}, tokenizer {} {}",
                     to_string(documents.kind), field, split.valid, split.test, split.seed,
                     tokenizer.kind,
                     tokenizer.kind == "bpe" ? std::to_string(tokenizer.vocabulary) : "");
}

std::vector<std::uint64_t> Seeds::of_size(double nominal_size) const {
  const bool more = !extra_between.empty() && nominal_size >= extra_between.front() &&
                    nominal_size <= extra_between.back();
  std::vector<std::uint64_t> seeds;
  const auto add = [&](std::uint64_t seed) {
    if (std::find(seeds.begin(), seeds.end(), seed) == seeds.end()) seeds.push_back(seed);
  };
  for (const std::uint64_t seed : all) add(seed);
  if (more) std::for_each(extra.begin(), extra.end(), add);
  return seeds;
}

GridShape StudySpec::first_shape() const {
  if (!grid.shapes.empty()) return grid.shapes.front();
  const auto allowed = fits::candidate_shapes(design->limits());
  if (allowed.empty()) {
    throw ConfigError(fmt::format(
        "{}: design: no width of whole heads fits these depths and sizes; allow other sizes, a "
        "smaller head_size or min_width",
        origin));
  }
  return {allowed.front().layers, allowed.front().width, allowed.front().width / design->head_size};
}

train::RunSpec StudySpec::run_spec(const GridShape& shape, std::int64_t steps,
                                   std::uint64_t seed) const {
  std::vector<std::string> settings{
      fmt::format("model.layers={}", shape.layers), fmt::format("model.width={}", shape.width),
      fmt::format("model.heads={}", shape.heads), fmt::format("train.steps={}", steps),
      fmt::format("train.seed={}", seed)};
  if (budget.warmup_share > 0) {
    const auto warmup = std::llround(budget.warmup_share * as_double(steps));
    settings.push_back(fmt::format("train.warmup={}", warmup));
  }
  TomlReader file = TomlReader::from_text(text, origin, settings);
  train::RunSpec spec;
  TomlReader model_table = file.table("model");
  spec.model = model::read_model_spec(model_table);
  spec.model.vocab = 0;
  TomlReader train_table = file.table("train");
  train::read_train_table(train_table, spec);
  spec.eval_tokens = corpus.eval_tokens;
  if (device == engine::DeviceKind::cuda) spec.device = device;
  return spec;
}

StudySpec read_study_spec_text(const std::string& text, const std::string& origin,
                               const std::vector<std::string>& settings) {
  TomlReader file = TomlReader::from_text(text, origin, settings);
  StudySpec spec;
  spec.text = settings.empty() ? std::string(without_checksum(text)) : file.dump();
  spec.origin = origin;
  KeyReader top(file);
  StudySpec::visit_top_keys(spec, top);
  spec.corpus = read_corpus(file.table("corpus"));
  spec.design = read_design(file);
  if (!spec.design || file.has("grid")) {
    TomlReader grid = file.table("grid");
    spec.grid = read_grid(grid);
  }
  spec.budget = read_budget(file.table("budget"));
  spec.seeds = read_seeds(file.table("seeds"));
  TomlReader run = file.table("run");
  KeyReader run_reader(run);
  StudySpec::visit_run_keys(spec, run_reader);
  run.finish();
  refuse(file, "model", {"layers", "width", "heads"}, "comes from the grid; remove it");
  refuse(file, "model", {"vocab"}, "comes from the tokenizer; remove it");
  refuse(file, "train", {"steps"}, "comes from the budget; remove it");
  refuse(file, "train", {"seed"}, "comes from [seeds]; remove it");
  file.finish();
  // The model and train tables are read for every run: a trial reveals their mistakes now.
  spec.run_spec(spec.first_shape(), 1000, spec.seeds.all.front());
  return spec;
}

std::vector<TableDescription> describe_study_spec() {
  const StudySpec spec;
  KeyDescriber top, run;
  StudySpec::visit_top_keys(spec, top);
  StudySpec::visit_run_keys(spec, run);
  std::vector<TableDescription> tables{{"", top.keys()}, describe_keys("corpus", spec.corpus)};
  for (const GridKind kind : kEnumValues<GridKind>) {
    GridRules rules;
    rules.kind = kind;
    tables.push_back(describe_keys("grid", rules));
  }
  tables.push_back(describe_keys("budget", spec.budget));
  tables.push_back(describe_keys("seeds", spec.seeds));
  tables.push_back(describe_keys("design", DesignRules{}));
  tables.push_back({"run", run.keys()});
  return tables;
}

StudySpec read_study_spec(const std::filesystem::path& path,
                          const std::vector<std::string>& settings) {
  return read_study_spec_text(read_text_file(path), path.string(), settings);
}

}  // namespace fathom::study

namespace fathom::embedded {
extern const std::string_view study_quick_toml;
extern const std::string_view study_levine_toml;
extern const std::string_view study_levine_full_toml;
extern const std::string_view study_adaptive_toml;
}  // namespace fathom::embedded

namespace fathom::study {

namespace {

struct Preset {
  std::string name;
  std::string_view text;
};

const std::vector<Preset>& presets() {
  static const std::vector<Preset> list{{"quick", embedded::study_quick_toml},
                                        {"levine", embedded::study_levine_toml},
                                        {"levine-full", embedded::study_levine_full_toml},
                                        {"adaptive", embedded::study_adaptive_toml}};
  return list;
}

}  // namespace

const std::vector<std::string>& preset_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Preset& preset : presets()) all.push_back(preset.name);
    return all;
  }();
  return names;
}

std::string preset_text(const std::string& name) {
  for (const Preset& preset : presets()) {
    if (preset.name == name) return std::string(preset.text);
  }
  throw ConfigError(fmt::format("preset '{}' is not known.{} Choose from: {}", name,
                                did_you_mean(name, preset_names()), join(preset_names(), ", ")));
}

}  // namespace fathom::study
