#include "study/corpus_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "core/counts.h"
#include "core/error.h"
#include "core/hash.h"
#include "data/named_corpora.h"

namespace fathom::study {

namespace fs = std::filesystem;

namespace {

/// The files of a source by the rules of data/corpus.h; empty when it does not exist.
std::vector<CorpusFile> list_files(const fs::path& source) {
  std::vector<CorpusFile> files;
  std::error_code error;
  const auto add = [&](const fs::path& path, const std::string& name) {
    files.push_back({name, path, fs::file_size(path, error),
                     fs::last_write_time(path, error).time_since_epoch().count(), ""});
  };
  if (fs::is_regular_file(source, error)) add(source, source.filename().string());
  if (!fs::is_directory(source, error)) return files;
  for (auto walk = fs::recursive_directory_iterator(source); walk != fs::end(walk); ++walk) {
    const bool hidden = walk->path().filename().string().starts_with('.');
    if (hidden && walk->is_directory()) walk.disable_recursion_pending();
    if (hidden || !walk->is_regular_file()) continue;
    add(walk->path(), walk->path().lexically_relative(source).string());
  }
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return files;
}

}  // namespace

std::vector<CorpusFile> list_corpus(const CorpusChoice& corpus) {
  std::vector<CorpusFile> files;
  for (const std::string& source : {corpus.path, corpus.valid_from, corpus.test_from}) {
    if (source.empty()) continue;
    for (CorpusFile& file : list_files(data::resolve_corpus(source))) files.push_back(file);
  }
  return files;
}

std::string hash_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw DataError(fmt::format("{}: cannot be read", path.string()));
  Hasher hasher;
  std::vector<char> buffer(1 << 20);
  while (stream.read(buffer.data(), std::ssize(buffer)), stream.gcount() > 0) {
    hasher.add(buffer.data(), as_size(stream.gcount()));
  }
  return hasher.value().hex();
}

std::string hash_all(const std::vector<CorpusFile>& files) {
  Hasher hasher;
  for (const CorpusFile& file : files) {
    hasher.add_field(file.name);
    hasher.add_field(file.hash);
  }
  return hasher.value().hex();
}

}  // namespace fathom::study
