// The files a study's corpus is made of, with what shows whether they have changed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "study/study_spec.h"

namespace fathom::study {

struct CorpusFile {
  std::string name;  // within its source
  std::filesystem::path path;
  std::uint64_t bytes = 0;
  std::int64_t changed = 0;  // nanoseconds of the file system's clock
  std::string hash;          // XXH3-128, where it was asked for
};

/// In a fixed order; empty when a source does not exist.
std::vector<CorpusFile> list_corpus(const CorpusChoice& corpus);

std::string hash_file(const std::filesystem::path& path);
/// XXH3-128 over names and contents.
std::string hash_all(const std::vector<CorpusFile>& files);

}  // namespace fathom::study
