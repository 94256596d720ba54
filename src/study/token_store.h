// The tokens of a study: prepared once and bound to the text they were made of.
//
// The study's corpus file lists every file of the corpus with size, modification time and content
// hash. A later command trusts equal sizes and times, reads the text again where they differ, and
// refuses text that changed: half of the runs would have learned from something else.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "data/prepare.h"
#include "data/token_set.h"
#include "study/study_folder.h"
#include "study/study_spec.h"

namespace fathom::study {

struct CorpusFacts {
  std::string name;     // as the spec names it
  std::string hash;     // XXH3-128 over names and contents
  std::string summary;  // CorpusChoice::summary()
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;
};

/// Prepares the tokens, or checks that those in `folder` are of this corpus and tokenizer. Tokens
/// of a neighbouring study that were made of the same text in the same way are reused (hard links),
/// not made again. A corpus that is no longer there does not matter once its tokens are. DataError
/// when it is missing before then, empty, or has changed; ConfigError when the spec asks for
/// another tokenizer.
void ensure_tokens(const StudyFolder& folder, const CorpusChoice& corpus,
                   const data::PrepareProgress& progress = {});

CorpusFacts read_corpus_facts(const StudyFolder& folder);

}  // namespace fathom::study
