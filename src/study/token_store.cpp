#include "study/token_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/error.h"
#include "core/files.h"
#include "core/json_file.h"
#include "core/json_reader.h"
#include "core/json_text.h"
#include "data/named_corpora.h"
#include "study/corpus_files.h"

namespace fathom::study {

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::ordered_json;

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

/// The stored list with hashes; a list, because a map would be too slow to write and files keep
/// their order.
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
                  "it, or start a new study directory",
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
          "{} holds tokens made with: {}; the spec now asks for: {}; start a new study directory",
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
      "{}: nothing is held out: the text ({} bytes) is {} {}, and about {} are needed; split it "
      "more finely (--set corpus.documents=lines, or paragraphs), or give more text",
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

/// The studies in the folder that holds this one, by name.
std::vector<StudyFolder> neighbours_of(const StudyFolder& folder) {
  std::error_code error;
  const fs::path own = fs::weakly_canonical(folder.path(), error);
  std::vector<fs::path> paths;
  for (fs::directory_iterator entry(own.parent_path(), error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path() != own && entry->is_directory(error)) paths.push_back(entry->path());
  }
  std::sort(paths.begin(), paths.end());
  return {paths.begin(), paths.end()};
}

/// Whether the study has tokens of this text, made in this way.
bool has_equal_tokens(const StudyFolder& study, const CorpusChoice& corpus,
                      const std::string& hash) {
  std::error_code error;
  if (!fs::is_regular_file(study.corpus(), error) || !data::is_token_set(study.tokens())) {
    return false;
  }
  try {
    const CorpusFacts facts = read_corpus_facts(study);
    return facts.hash == hash && facts.summary == corpus.summary();
  } catch (const Error&) {
    return false;  // whatever is there, it is not ours to repair
  }
}

/// Hard links in `target` to the files of a token set; copies where the file system has no links.
/// False, with nothing left behind, when the set is incomplete.
bool link_tokens(const fs::path& source, const fs::path& target) {
  std::error_code error;
  try {
    fs::create_directories(target);
    for (const auto& entry : fs::directory_iterator(source)) {
      if (!entry.is_regular_file()) continue;
      const fs::path name = target / entry.path().filename();
      fs::create_hard_link(entry.path(), name, error);
      if (error) fs::copy_file(entry.path(), name);
    }
    data::TokenSet(target).verify();  // DataError if a part is missing or damaged
    return true;
  } catch (const std::exception&) {
    fs::remove_all(target, error);
    return false;
  }
}

/// Tokens of a neighbour that were made of the same text in the same way, in `aside`.
bool take_tokens(const StudyFolder& folder, const CorpusChoice& corpus, const std::string& hash,
                 const fs::path& aside) {
  for (const StudyFolder& study : neighbours_of(folder)) {
    if (has_equal_tokens(study, corpus, hash) && link_tokens(study.tokens(), aside)) return true;
  }
  return false;
}

void make_tokens(const CorpusChoice& corpus, const fs::path& aside,
                 const data::PrepareProgress& progress) {
  const data::PrepareReport report = prepare(request_of(corpus, aside), progress);
  if (report.splits[data::Split::valid].count > 0) return;
  std::error_code error;
  fs::remove_all(aside, error);
  refuse_without_held_out(corpus, report);
}

}  // namespace

void ensure_tokens(const StudyFolder& folder, const CorpusChoice& corpus,
                   const data::PrepareProgress& progress) {
  const fs::path tokens = folder.tokens();
  if (data::is_token_set(tokens) && fs::exists(folder.corpus())) {
    return check_unchanged(folder, corpus);
  }
  // Made under another name and renamed: a kill leaves nothing that looks like tokens.
  const fs::path aside = folder.unfinished_tokens();
  std::error_code error;
  fs::remove_all(aside, error);
  fs::remove_all(tokens, error);
  std::vector<CorpusFile> files = list_corpus(corpus);
  for (CorpusFile& file : files) file.hash = hash_file(file.path);
  if (files.empty() || !take_tokens(folder, corpus, hash_all(files), aside)) {
    make_tokens(corpus, aside, progress);
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
