#include "study/study_spec.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "core/units.h"
#include "model/spec_toml.h"

namespace fathom::study {
namespace {

const std::vector<std::string> kDevices{"cpu", "cuda"};

CorpusChoice read_corpus(TomlReader table) {
  CorpusChoice corpus;
  corpus.path = table.text("path", "");
  if (corpus.path.empty()) {
    table.fail("path", "is missing; name a file, a folder or 'sotu', or give --corpus");
  }
  if (corpus.path == "-") table.fail("path", "cannot be a stream: a study reads it again");
  corpus.valid_from = table.text("valid_from", "");
  corpus.test_from = table.text("test_from", "");
  corpus.documents.kind =
      parse_enum<data::DocumentKind>(table.text("documents", "auto"), "document rule");
  corpus.split.valid = corpus.valid_from.empty() ? table.number("valid", 0.05) : 0;
  corpus.split.test = corpus.test_from.empty() ? table.number("test", 0.05) : 0;
  check(corpus.split);
  corpus.tokenizer.kind = table.text("tokenizer", "bpe");
  const auto vocab = table.list("vocab");
  if (vocab.size() > 1) table.fail("vocab", "must be one number");
  corpus.tokenizer.vocabulary =
      static_cast<std::uint64_t>(vocab.empty() ? 2000 : parse_whole(vocab.front(), "corpus.vocab"));
  check(corpus.tokenizer);
  corpus.eval_tokens = table.integer("eval_tokens", corpus.eval_tokens);
  if (corpus.eval_tokens < 1) table.fail("eval_tokens", "must be greater than zero");
  table.finish();
  return corpus;
}

Budget read_budget(TomlReader table) {
  Budget budget;
  std::set<double> tokens;
  for (const std::string& item : table.list("tokens")) {
    tokens.insert(parse_count(item, "budget.tokens"));
  }
  budget.tokens.assign(tokens.begin(), tokens.end());
  budget.tokens_per_parameter = table.number("tokens_per_parameter", 0);
  if (budget.tokens.empty() == (budget.tokens_per_parameter <= 0)) {
    table.fail("tokens", "or tokens_per_parameter is needed, one of them");
  }
  budget.warmup_share = table.number("warmup_share", 0);
  if (!(budget.warmup_share >= 0 && budget.warmup_share < 1)) {
    table.fail("warmup_share", "must lie in [0, 1)");
  }
  table.finish();
  return budget;
}

std::vector<std::uint64_t> read_seed_list(TomlReader& table, const char* key) {
  std::vector<std::uint64_t> seeds;
  for (const std::string& item : table.list(key)) {
    seeds.push_back(item == "0" ? 0 : static_cast<std::uint64_t>(parse_whole(item, "a seed")));
  }
  return seeds;
}

Seeds read_seeds(TomlReader table) {
  Seeds seeds;
  if (table.has("all")) seeds.all = read_seed_list(table, "all");
  seeds.extra = read_seed_list(table, "extra");
  const auto range = table.list("extra_between");
  if (seeds.extra.empty() != range.empty() || (!range.empty() && range.size() != 2)) {
    table.fail("extra_between", "must be two sizes, [\"1M\", \"8M\"], and goes with extra");
  }
  if (!range.empty()) {
    seeds.extra_from = parse_count(range[0], "seeds.extra_between");
    seeds.extra_to = parse_count(range[1], "seeds.extra_between");
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
  return fmt::format("documents {}, valid {}, test {}, split seed {}, tokenizer {} {}",
                     to_string(documents.kind), split.valid, split.test, split.seed, tokenizer.kind,
                     tokenizer.kind == "bpe" ? std::to_string(tokenizer.vocabulary) : "");
}

train::RunSpec StudySpec::run_spec(const GridShape& shape, std::int64_t steps,
                                   std::uint64_t seed) const {
  std::vector<std::string> settings{
      fmt::format("model.layers={}", shape.layers), fmt::format("model.width={}", shape.width),
      fmt::format("model.heads={}", shape.heads), fmt::format("train.steps={}", steps),
      fmt::format("train.seed={}", seed)};
  if (budget.warmup_share > 0) {
    settings.push_back(fmt::format("train.warmup={}",
                                   std::llround(budget.warmup_share * static_cast<double>(steps))));
  }
  TomlReader file = TomlReader::from_text(text, origin, settings);
  train::RunSpec spec;
  TomlReader model_table = file.table("model");
  spec.model = model::read_model_spec(model_table);
  spec.model.vocab = 0;
  TomlReader train_table = file.table("train");
  train::read_train_table(train_table, spec);
  spec.eval_tokens = corpus.eval_tokens;
  if (device == "cuda") spec.device = engine::DeviceKind::cuda;
  return spec;
}

StudySpec read_study_spec_text(const std::string& text, const std::string& origin,
                               const std::vector<std::string>& settings) {
  TomlReader file = TomlReader::from_text(text, origin, settings);
  StudySpec spec;
  spec.text = settings.empty() ? text : file.dump();
  spec.origin = origin;
  spec.title = file.text("title", "");
  spec.question = file.text("question", "");
  spec.corpus = read_corpus(file.table("corpus"));
  TomlReader grid = file.table("grid");
  spec.grid = read_grid(grid);
  spec.budget = read_budget(file.table("budget"));
  spec.seeds = read_seeds(file.table("seeds"));
  TomlReader run = file.table("run");
  spec.device = run.text("device", "cpu");
  if (spec.device != "cpu" && spec.device != "cuda") {
    run.fail("device", fmt::format("'{}' is not one of {}.{}", spec.device, join(kDevices, ", "),
                                   did_you_mean(spec.device, kDevices)));
  }
  run.finish();
  refuse(file, "model", {"layers", "width", "heads"}, "comes from the grid; take it out");
  refuse(file, "model", {"vocab"}, "comes from the tokenizer; take it out");
  refuse(file, "train", {"steps"}, "comes from the budget; take it out");
  refuse(file, "train", {"seed"}, "comes from [seeds]; take it out");
  file.finish();
  // The model and train tables are read for every run: a trial shows their mistakes now.
  spec.run_spec(spec.grid.shapes.front(), 1000, spec.seeds.all.front());
  return spec;
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
}  // namespace fathom::embedded

namespace fathom::study {

const std::vector<std::string>& preset_names() {
  static const std::vector<std::string> names{"quick", "levine", "levine-full"};
  return names;
}

std::string preset_text(const std::string& name) {
  if (name == "quick") return std::string(embedded::study_quick_toml);
  if (name == "levine") return std::string(embedded::study_levine_toml);
  if (name == "levine-full") return std::string(embedded::study_levine_full_toml);
  throw ConfigError(fmt::format("preset '{}' is not known.{} Choose from: {}", name,
                                did_you_mean(name, preset_names()), join(preset_names(), ", ")));
}

}  // namespace fathom::study
