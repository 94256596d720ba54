// A study as its TOML file describes it: the text it learns from, the shapes, the budget, and how
// each model is trained. docs/studies.md describes every key; the lists below are what is read.
//
//   title, question                      free text
//   [corpus] [grid] [budget] [seeds]     see the lists of keys
//   [model]   keys of a run spec's [model], less what the grid and the corpus decide
//   [train]   keys of a run spec's [train], less steps and seed
//   [run]     where
//   [design]  what is to be decided: an adaptive study (design_rules.h); [grid] may then be absent
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/spec_keys.h"
#include "data/prepare.h"
#include "study/design_rules.h"
#include "study/grid.h"
#include "train/run_spec.h"

namespace fathom::study {

struct CorpusChoice {
  std::string path, valid_from, test_from;
  data::DocumentRule documents;
  data::SplitRule split;
  data::TokenizerRequest tokenizer{.kind = "bpe"};
  std::int64_t eval_tokens = 200'000;

  /// One line with everything that decides the tokens except the text itself.
  std::string summary() const;

  template <class Self, class Visitor>
  static void visit_keys(Self& corpus, Visitor& key) {
    key("path", corpus.path, "text to train on: a file, a folder or a name");
    key("documents", corpus.documents.kind, "where documents begin and end");
    key("text_field", corpus.documents.text_field, "JSONL: the field that holds the text",
        {.only_when_set = true});
    key("valid", corpus.split.valid, "share of documents held out for validation", {0, 1});
    key("test", corpus.split.test, "share of documents held out for testing", {0, 1});
    key("valid_from", corpus.valid_from, "separate validation text, instead of valid");
    key("test_from", corpus.test_from, "separate test text, instead of test");
    key("tokenizer", corpus.tokenizer.kind, "bytes, chars or bpe");
    key("vocab", corpus.tokenizer.vocabulary, "tokens of a bpe tokenizer",
        {.low = 1, .suffixed = true});
    key("eval_tokens", corpus.eval_tokens, "held-out tokens read by every evaluation", {.low = 1});
  }
};

struct Budget {
  std::vector<double> tokens;
  double tokens_per_parameter = 0;
  double warmup_share = 0;

  template <class Self, class Visitor>
  static void visit_keys(Self& budget, Visitor& key) {
    key("tokens", budget.tokens, "training tokens; one run for each count");
    key("tokens_per_parameter", budget.tokens_per_parameter,
        "alternative: a multiple of the non-embedding parameters", {.low = 0});
    key("warmup_share", budget.warmup_share,
        "warm-up as a share of the steps; 0: train.warmup applies", {0, 1});
  }
};

struct Seeds {
  std::vector<std::uint64_t> all{1};
  std::vector<std::uint64_t> extra;
  std::vector<double> extra_between;

  /// Those that a shape of 12 L D^2 parameters is trained with.
  std::vector<std::uint64_t> of_size(double nominal_size) const;

  template <class Self, class Visitor>
  static void visit_keys(Self& seeds, Visitor& key) {
    key("all", seeds.all, "every shape is trained with each of them");
    key("extra", seeds.extra, "additional seeds for a range of sizes");
    key("extra_between", seeds.extra_between, "the smallest and largest of these sizes, 12 L D^2");
  }
};

struct StudySpec {
  std::string text, origin;  // TOML, and its name in messages
  std::string title, question;
  CorpusChoice corpus;
  Grid grid;
  Budget budget;
  Seeds seeds;
  std::optional<DesignRules> design;
  engine::DeviceKind device = engine::DeviceKind::cpu;

  /// A shape to try the spec with: the grid's first, or the smallest that the design allows.
  GridShape first_shape() const;
  /// The run spec of one shape, budget and seed; the vocabulary stays open (0).
  train::RunSpec run_spec(const GridShape& shape, std::int64_t steps, std::uint64_t seed) const;

  /// The keys above all tables, and those of [run].
  template <class Self, class Visitor>
  static void visit_top_keys(Self& spec, Visitor& key) {
    key("title", spec.title, "title of the report");
    key("question", spec.question, "the question the study asks");
  }
  template <class Self, class Visitor>
  static void visit_run_keys(Self& spec, Visitor& key) {
    key("device", spec.device, "where models are trained");
  }
};

/// Every table of a study spec but [model] and [train] as help shows it.
std::vector<TableDescription> describe_study_spec();

/// Reads, overrides by settings "a.b=value" and validates, a trial run spec included.
StudySpec read_study_spec_text(const std::string& text, const std::string& origin,
                               const std::vector<std::string>& settings = {});
StudySpec read_study_spec(const std::filesystem::path& path,
                          const std::vector<std::string>& settings = {});

/// The studies that ship with the program.
const std::vector<std::string>& preset_names();
std::string preset_text(const std::string& name);

}  // namespace fathom::study
