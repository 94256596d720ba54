// A study as its TOML file says it: the text it learns from, the shapes, the budget, and how each
// model is trained. docs/studies.md describes every key.
//
//   title, question                      free text
//   [corpus]  path, documents, valid, test, valid_from, test_from, tokenizer, vocab, eval_tokens
//   [grid]    see study/grid.h
//   [budget]  tokens = "100M" or a list, or tokens_per_parameter; warmup_share
//   [seeds]   all = [1], extra = [2], extra_between = ["1M", "8M"]
//   [model]   keys of a run spec's [model], less what the grid and the corpus decide
//   [train]   keys of a run spec's [train], less steps and seed
//   [run]     device
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/prepare.h"
#include "study/grid.h"
#include "train/run_spec.h"

namespace fathom::study {

struct CorpusChoice {
  std::string path, valid_from, test_from;
  data::DocumentRule documents;
  data::SplitRule split;
  data::TokenizerRequest tokenizer;
  std::int64_t eval_tokens = 200'000;

  /// One line that names all that decides the tokens but the text itself.
  std::string summary() const;
};

struct Budget {
  std::vector<double> tokens;       // a run for each
  double tokens_per_parameter = 0;  // where `tokens` is empty; non-embedding parameters
  double warmup_share = 0;          // of the steps; 0: [train] warmup holds
};

struct Seeds {
  std::vector<std::uint64_t> all{1};
  std::vector<std::uint64_t> extra;  // for sizes N within [from, to] alone
  double extra_from = 0, extra_to = 0;
};

struct StudySpec {
  std::string text, origin;  // TOML, and its name in messages
  std::string title, question;
  CorpusChoice corpus;
  Grid grid;
  Budget budget;
  Seeds seeds;
  std::string device = "cpu";

  /// The run spec of one shape, budget and seed; the vocabulary stays open (0).
  train::RunSpec run_spec(const GridShape& shape, std::int64_t steps, std::uint64_t seed) const;
};

/// Reads, overrides by settings "a.b=value" and validates, a trial run spec included.
StudySpec read_study_spec_text(const std::string& text, const std::string& origin,
                               const std::vector<std::string>& settings = {});
StudySpec read_study_spec(const std::filesystem::path& path,
                          const std::vector<std::string>& settings = {});

/// The studies that come with the program.
const std::vector<std::string>& preset_names();
std::string preset_text(const std::string& name);

}  // namespace fathom::study
