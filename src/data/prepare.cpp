#include "data/prepare.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <thread>

#include "core/atomic_file.h"
#include "core/counts.h"
#include "core/error.h"
#include "data/byte_source.h"
#include "data/token_set.h"

namespace fathom::data {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kBatchBytes = 4 << 20;

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// The output folder, ours alone while we write. Leftovers of a killed run are removed, and so are
/// the folders made here when nothing was written.
class OutputFolder {
 public:
  explicit OutputFolder(const fs::path& path) {
    std::error_code error;
    for (fs::path made = path; !made.empty() && !fs::exists(made, error);
         made = made.parent_path()) {
      made_.push_back(made);
    }
    fs::create_directories(path, error);
    handle_ = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (handle_ < 0) {
      throw DataError(
          fmt::format("{}: cannot create this folder: {}", path.string(), std::strerror(errno)));
    }
    if (flock(handle_, LOCK_EX | LOCK_NB) != 0) {
      close(handle_);
      throw DataError(fmt::format("{}: another program is preparing a corpus here", path.string()));
    }
    for (const auto& entry : fs::directory_iterator(path, error)) {
      const std::string name = entry.path().filename().string();
      constexpr std::array kOurs{"train.tokens.",   "valid.tokens.",    "test.tokens.", "input.",
                                 "tokenizer.json.", "tokenizer.model.", "corpus.json."};
      const bool ours = std::any_of(kOurs.begin(), kOurs.end(),
                                    [&](const char* begin) { return name.starts_with(begin); });
      if (ours && name.ends_with(".tmp")) fs::remove(entry.path(), error);
    }
  }
  /// Folders that were made for nothing are removed; remove() spares those that hold something.
  ~OutputFolder() {
    close(handle_);
    std::error_code not_empty;
    for (const fs::path& made : made_) {
      if (!fs::remove(made, not_empty)) break;
    }
  }
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

 private:
  int handle_;
  std::vector<fs::path> made_;  // innermost first
};

/// A copy of a stream in the output folder, removed at the end.
class Spool {
 public:
  Spool(const fs::path& source, fs::path target, const PrepareProgress& progress)
      : target_(std::move(target)) {
    const auto bytes = open_byte_source(source);
    AtomicFile file(target_);
    std::vector<char> buffer(1 << 20);
    for (std::uint64_t total = 0;;) {
      const std::size_t count = bytes->read(buffer);
      if (count == 0) break;
      file.write(buffer.data(), count);
      total += count;
      if (progress) progress("copy", -1, total);
    }
    file.commit();
  }
  ~Spool() {
    std::error_code ignored;
    fs::remove(target_, ignored);
  }
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;
  const fs::path& path() const { return target_; }

 private:
  fs::path target_;
};

/// Walks a corpus and knows the split of every piece.
class SplitReader {
 public:
  SplitReader(const PrepareRequest& request, const std::vector<CorpusSource>& sources,
              const PrepareProgress& progress, std::string stage)
      : rule_(request.split),
        reader_(sources, request.documents),
        progress_(progress),
        stage_(std::move(stage)) {}

  bool next(Piece& piece, Split& split) {
    if (!reader_.next(piece)) return false;
    if (piece.begins_document) {
      current_ = piece.split ? *piece.split : split_of(piece.text, rule_);
      ++documents_[current_];
    }
    split = current_;
    text_bytes_ += piece.text.size();
    if (progress_) {
      const auto total = as_double(reader_.total_bytes());
      const auto done = as_double(reader_.consumed_bytes());
      progress_(stage_, total > 0 ? done / total : -1, text_bytes_);
    }
    return true;
  }

  /// DataError when what was read leaves nothing to train on.
  void require_training_text() const {
    std::uint64_t documents = 0;
    for (const std::uint64_t count : documents_) documents += count;
    if (documents == 0) throw DataError("the corpus is empty: it contains no text");
    if (documents_[Split::train] > 0) return;
    throw DataError(fmt::format(
        "no text is left for training: all {} documents fell into held-out splits; cut the text "
        "into more documents (paragraphs, lines), or hold out smaller shares",
        documents));
  }

 private:
  SplitRule rule_;
  CorpusReader reader_;
  const PrepareProgress& progress_;
  std::string stage_;
  Split current_ = Split::train;
  BySplit<std::uint64_t> documents_{};
  std::uint64_t text_bytes_ = 0;
};

struct Work {
  Piece piece;
  Split split;
  std::vector<TokenId> ids;
  std::exception_ptr error;
};

/// Encodes every item of a batch; the first failure in order of the text is thrown.
void encode_batch(std::vector<Work>& batch, std::vector<std::unique_ptr<Encoder>>& encoders) {
  std::atomic<std::size_t> next{0};
  const auto run = [&](Encoder& encoder) {
    for (std::size_t i = next++; i < batch.size(); i = next++) {
      Work& work = batch[i];
      try {
        encoder.encode(work.piece.text, work.ids);
      } catch (const DataError& error) {
        work.error = std::make_exception_ptr(DataError(fmt::format(
            "{}: from byte {} on, {}", work.piece.origin, work.piece.offset, error.what())));
      } catch (...) {
        work.error = std::current_exception();
      }
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 1; i < std::min(encoders.size(), batch.size()); ++i) {
    threads.emplace_back([&run, &encoder = *encoders[i]] { run(encoder); });
  }
  run(*encoders[0]);
  threads.clear();
  for (const Work& work : batch) {
    if (work.error) std::rethrow_exception(work.error);
  }
}

class SplitWriters {
 public:
  SplitWriters(const fs::path& folder, const Tokenizer& tokenizer)
      : end_of_document_(tokenizer.end_of_document()) {
    for (const Split split : kSplits) {
      writers_[split] = std::make_unique<TokenFileWriter>(token_file_path(folder, split),
                                                          tokenizer.vocabulary(), tokenizer.hash());
    }
  }
  void add(const Work& work) {
    TokenFileWriter& writer = *writers_[work.split];
    writer.add(work.ids);
    writer.count_text(work.piece.text.size());
    if (!work.piece.ends_document) return;
    writer.count_document();
    if (work.piece.end_token) writer.add(std::span(&end_of_document_, 1));
  }
  BySplit<TokenFileInfo> commit() {
    BySplit<TokenFileInfo> infos;
    for (const Split split : kSplits) infos[split] = writers_[split]->commit();
    return infos;
  }

 private:
  BySplit<std::unique_ptr<TokenFileWriter>> writers_;
  TokenId end_of_document_;
};

void write_tokens(SplitReader& reader, const Tokenizer& tokenizer, unsigned threads,
                  SplitWriters& writers) {
  std::vector<std::unique_ptr<Encoder>> encoders;
  for (unsigned i = 0; i < std::max(1u, threads); ++i) encoders.push_back(tokenizer.encoder());
  std::vector<Work> batch;
  std::size_t bytes = 0;
  const auto flush = [&] {
    encode_batch(batch, encoders);
    for (const Work& work : batch) writers.add(work);
    batch.clear();
    bytes = 0;
  };
  for (Work work; reader.next(work.piece, work.split); work = {}) {
    bytes += work.piece.text.size();
    batch.push_back(std::move(work));
    if (bytes >= kBatchBytes * encoders.size()) flush();
  }
  flush();
}

/// The files of a token set without its manifest, which is written last.
std::vector<fs::path> parts_of(const fs::path& folder) {
  std::vector<fs::path> parts{folder / "tokenizer.json", folder / "tokenizer.model"};
  for (const Split split : kSplits) parts.push_back(token_file_path(folder, split));
  return parts;
}

/// Whether the folder holds nothing but what a preparation that was killed or failed has left. A
/// tokenizer alone may belong to the user; next to token files it is ours.
bool holds_only_leftovers(const fs::path& folder) {
  bool tokens = false, tokenizer = false;
  std::error_code error;
  const std::vector<fs::path> parts = parts_of(folder);
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const bool temporary = name.ends_with(".tmp");
    const bool token_file = name.find(".tokens") != std::string::npos;
    const bool part = std::find(parts.begin(), parts.end(), entry.path()) != parts.end();
    if (!temporary && !part) return false;
    tokens |= token_file;
    tokenizer |= part && !token_file;
  }
  return tokens || !tokenizer;
}

void check_request(const PrepareRequest& request) {
  check(request.split);
  if (!request.tokenizer_from) check(request.tokenizer);
  if (request.documents.kind == DocumentKind::separator && request.documents.separator.empty()) {
    throw ConfigError("the separator rule needs the text of the separating line");
  }
  std::error_code error;
  if (fs::is_directory(request.output, error) && !fs::is_empty(request.output, error) &&
      !is_token_set(request.output)) {
    if (!holds_only_leftovers(request.output)) {
      throw ConfigError(fmt::format("{}: this folder holds other files; choose a new one",
                                    request.output.string()));
    }
  }
  for (const CorpusSource& source : request.sources) {
    const auto inside = fs::weakly_canonical(request.output, error)
                            .lexically_relative(fs::weakly_canonical(source.path, error));
    if (fs::is_directory(source.path, error) && !inside.empty() && *inside.begin() != "..") {
      throw ConfigError(fmt::format("{}: the output lies inside the corpus folder {}",
                                    request.output.string(), source.path.string()));
    }
  }
}

/// Replaces sources that can be read only once by copies.
std::vector<CorpusSource> make_rereadable(const PrepareRequest& request,
                                          const PrepareProgress& progress,
                                          std::vector<std::unique_ptr<Spool>>& spools) {
  std::vector<CorpusSource> sources = request.sources;
  for (CorpusSource& source : sources) {
    std::error_code error;
    const fs::file_status status = fs::status(source.path, error);
    if (fs::is_regular_file(status) || fs::is_directory(status)) continue;
    if (source.path != "-" && !fs::exists(status)) continue;  // CorpusReader reports it
    const std::string name = source.path == "-" ? "standard input" : source.path.string();
    spools.push_back(std::make_unique<Spool>(
        source.path, request.output / fmt::format("input.{}.tmp", spools.size()), progress));
    source.path = spools.back()->path();
    source.name = name;
  }
  return sources;
}

}  // namespace

PrepareReport prepare(const PrepareRequest& request, const PrepareProgress& progress) {
  check_request(request);
  PrepareReport report;
  const OutputFolder lock(request.output);
  std::vector<CorpusSource> sources = request.sources;
  std::vector<std::unique_ptr<Spool>> spools;

  const Stopwatch tokenizer_watch;
  std::unique_ptr<Tokenizer> tokenizer;
  if (request.tokenizer_from) {
    tokenizer = load_tokenizer(*request.tokenizer_from);
  } else {
    TokenizerTrainer trainer(request.tokenizer);
    if (trainer.needs_text()) {
      sources = make_rereadable(request, progress, spools);
      SplitReader reader(request, sources, progress, "read");
      Piece piece;
      for (Split split; reader.next(piece, split);) trainer.look(piece, split);
      reader.require_training_text();
      if (progress) progress("train tokenizer", -1, 0);
    }
    tokenizer = trainer.build();
  }
  report.seconds_tokenizer = tokenizer_watch.seconds();

  const Stopwatch encode_watch;
  SplitWriters writers(request.output, *tokenizer);
  SplitReader reader(request, sources, progress, "encode");
  write_tokens(reader, *tokenizer, request.threads, writers);
  reader.require_training_text();
  TokenSetOrigin origin{{}, to_string(request.documents.kind), request.split};
  for (const CorpusSource& source : request.sources) origin.sources.push_back(source.path.string());
  const bool replaces = is_token_set(request.output);
  try {
    tokenizer->save(request.output);
    report.splits = writers.commit();
    write_token_set_manifest(request.output, origin, report.splits, *tokenizer);
  } catch (...) {
    std::error_code ignored;
    for (const fs::path& part : parts_of(request.output)) {
      if (!replaces) fs::remove(part, ignored);
    }
    throw;
  }
  report.seconds_encode = encode_watch.seconds();
  report.tokenizer = tokenizer->hash();
  report.vocabulary = tokenizer->vocabulary();
  report.hash = token_set_hash(report.splits, report.tokenizer);
  return report;
}

}  // namespace fathom::data
