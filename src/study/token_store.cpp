#include "study/token_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/counts.h"
#include "core/error.h"
#include "core/files.h"
#include "core/hash.h"
#include "core/json_file.h"
#include "core/json_reader.h"
#include "core/json_text.h"
#include "data/named_corpora.h"

namespace fathom::study {

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::ordered_json;

struct CorpusFile {
  std::string name;  // within its source
  fs::path path;
  std::uint64_t bytes = 0;
  std::int64_t changed = 0;  // nanoseconds of the file system's clock
  std::string hash;
};

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

void write_facts(const fs::path& path, const CorpusChoice& corpus,
                 const std::vector<CorpusFile>& files) {
  std::uint64_t bytes = 0;
  Json listed = Json::array();
  for (const CorpusFile& file : files) {
    bytes += file.bytes;
    listed.push_back({{"name", file.name},
                      {"bytes", file.bytes},
                      {"changed", file.changed},
                      {"xxh128", file.hash}});
  }
  const Json document{{"schema", "fathom.study_corpus.v1"},
                      {"name", corpus.path},
                      {"xxh128", hash_all(files)},
                      {"bytes", bytes},
                      {"tokens_made_with", corpus.summary()},
                      {"files", listed}};
  write_file_atomically(path, json_file_text(document));
}

/// The stored list with hashes, as a map would be too slow to write and files keep their order.
std::vector<CorpusFile> read_files(const nlohmann::json& document) {
  std::vector<CorpusFile> files;
  for (const auto& entry : document.at("files")) {
    files.push_back({entry.at("name"), "", json_whole<std::uint64_t>(entry.at("bytes")),
                     json_whole<std::int64_t>(entry.at("changed")), entry.at("xxh128")});
  }
  return files;
}

[[noreturn]] void refuse_change(const fs::path& directory, const std::string& what) {
  throw DataError(
      fmt::format("{}: the corpus has changed since this study prepared its tokens ({}); restore "
                  "it, or begin a new study directory",
                  directory.string(), what));
}

void check_unchanged(const StudyFolder& folder, const CorpusChoice& corpus) {
  const fs::path& directory = folder.path();
  const fs::path path = folder.corpus();
  const nlohmann::json document = read_json_file(path);
  std::vector<CorpusFile> stored;
  try {
    if (document.at("tokens_made_with") != corpus.summary()) {
      throw ConfigError(fmt::format(
          "{} holds tokens made with: {}; the spec now asks for: {}; begin a new study directory",
          directory.string(), document.at("tokens_made_with").get<std::string>(),
          corpus.summary()));
    }
    stored = read_files(document);
  } catch (const nlohmann::json::exception&) {
    throw DataError(fmt::format("{}: does not describe a corpus; delete it and {} to prepare again",
                                path.string(), folder.tokens().string()));
  }
  std::vector<CorpusFile> files;
  try {
    files = list_corpus(corpus);
  } catch (const DataError&) {
    return;  // a named corpus that is not installed here
  }
  if (files.empty()) return;
  bool touched = false;
  if (files.size() != stored.size()) {
    refuse_change(directory, fmt::format("{} files, {} before", files.size(), stored.size()));
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (files[i].name != stored[i].name) refuse_change(directory, files[i].name + " is new");
    files[i].hash = stored[i].hash;
    if (files[i].bytes == stored[i].bytes && files[i].changed == stored[i].changed) continue;
    touched = true;
    files[i].hash = hash_file(files[i].path);
    if (files[i].hash != stored[i].hash) refuse_change(directory, files[i].name);
  }
  if (touched) write_facts(path, corpus, files);
}

[[noreturn]] void refuse_without_held_out(const CorpusChoice& corpus,
                                          const data::PrepareReport& report) {
  if (!corpus.valid_from.empty() || corpus.split.valid == 0) {
    throw DataError(fmt::format(
        "{}: nothing is held out; set corpus.valid above 0, or corpus.valid_from to a text",
        corpus.path));
  }
  std::uint64_t documents = 0, bytes = 0;
  for (const data::TokenFileInfo& info : report.splits) {
    documents += info.documents;
    bytes += info.text_bytes;
  }
  throw DataError(fmt::format(
      "{}: nothing is held out: the text ({} bytes) is {} {}, and about {} would do; cut it "
      "smaller (--set corpus.documents=lines, or paragraphs), or give more text",
      corpus.path, bytes, documents, documents == 1 ? "document" : "documents",
      data::documents_for_share(corpus.split.valid)));
}

data::PrepareRequest request_of(const CorpusChoice& corpus, const fs::path& output) {
  data::PrepareRequest request;
  request.sources.push_back({data::resolve_corpus(corpus.path), {}, ""});
  if (!corpus.valid_from.empty()) {
    request.sources.push_back({data::resolve_corpus(corpus.valid_from), data::Split::valid, ""});
  }
  if (!corpus.test_from.empty()) {
    request.sources.push_back({data::resolve_corpus(corpus.test_from), data::Split::test, ""});
  }
  request.output = output;
  request.documents = corpus.documents;
  request.split = corpus.split;
  request.tokenizer = corpus.tokenizer;
  request.threads = std::max(1u, std::thread::hardware_concurrency());
  return request;
}

}  // namespace

void ensure_tokens(const StudyFolder& folder, const CorpusChoice& corpus,
                   const data::PrepareProgress& progress) {
  const fs::path tokens = folder.tokens();
  if (data::is_token_set(tokens) && fs::exists(folder.corpus())) {
    return check_unchanged(folder, corpus);
  }
  // Made beside and renamed: a kill leaves nothing that looks like tokens.
  const fs::path aside = folder.unfinished_tokens();
  std::error_code error;
  fs::remove_all(aside, error);
  fs::remove_all(tokens, error);
  const data::PrepareRequest request = request_of(corpus, aside);
  std::vector<CorpusFile> files = list_corpus(corpus);
  for (CorpusFile& file : files) file.hash = hash_file(file.path);
  const data::PrepareReport report = prepare(request, progress);
  if (report.splits[data::Split::valid].count == 0) {
    fs::remove_all(aside, error);
    refuse_without_held_out(corpus, report);
  }
  write_facts(folder.corpus(), corpus, files);
  fs::rename(aside, tokens, error);
  if (error) throw DataError(fmt::format("{}: {}", tokens.string(), error.message()));
}

CorpusFacts read_corpus_facts(const StudyFolder& folder) {
  const fs::path path = folder.corpus();
  const nlohmann::json document = read_json_file(path);
  try {
    return {document.at("name"), document.at("xxh128"), document.at("tokens_made_with"),
            json_whole<std::uint64_t>(document.at("bytes")), document.at("files").size()};
  } catch (const nlohmann::json::exception&) {
    throw DataError(fmt::format("{}: does not describe a corpus", path.string()));
  }
}

}  // namespace fathom::study
