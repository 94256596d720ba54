#include "data/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/text.h"
#include "data/byte_source.h"
#include "data/json_lines.h"
#include "data/line_reader.h"

namespace fathom::data {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kPieceBytes = 1 << 20;
constexpr std::size_t kDocumentBlockBytes = 16 << 10;

/// "= Title =", but not "= = Section = =" nor "== Section ==".
bool is_title(std::string_view line) {
  line = without_line_end(line);
  while (line.starts_with(' ')) line.remove_prefix(1);
  while (line.ends_with(' ')) line.remove_suffix(1);
  return line.size() >= 5 && line.starts_with("= ") && line.ends_with(" =") && line[2] != '=';
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

}  // namespace

/// Cuts one file into documents and those into pieces.
class CorpusReader::Document {
 public:
  Document(const File& file, const DocumentRule& rule, LineReader lines, std::uint64_t offset = 0)
      : name_(file.name),
        split_(file.split),
        rule_(rule),
        lines_(std::move(lines)),
        offset_(offset) {
    if (rule_.kind == DocumentKind::automatic) {
      rule_.kind = file.in_folder            ? DocumentKind::file
                   : is_title(lines_.peek()) ? DocumentKind::titles
                                             : DocumentKind::blocks;
    }
  }

  bool next(Piece& piece) {
    piece = {};
    piece.origin = name_;
    piece.offset = offset_;
    piece.split = split_;
    piece.begins_document = document_bytes_ == 0;
    piece.end_token = rule_.kind != DocumentKind::blocks;
    for (;;) {
      const std::string_view line = pending_.empty() ? lines_.next() : pending_;
      if (line.empty()) break;
      if (pending_.empty() && is_separator(line)) {
        offset_ += line.size();
        previous_ended_ = true;
        if (document_bytes_ > 0) break;
        piece.offset = offset_;
        continue;
      }
      if (document_bytes_ > 0 && pending_.empty() && begins_document(line)) {
        pending_ = line;
        break;
      }
      if (piece.text.size() + line.size() > kPieceBytes) {
        pending_ = line;
        return true;
      }
      take(line, piece);
    }
    if (piece.text.empty() && document_bytes_ == 0) return false;
    piece.ends_document = true;
    document_bytes_ = 0;
    return true;
  }
  std::uint64_t consumed() const { return lines_.consumed(); }

 private:
  void take(std::string_view line, Piece& piece) {
    piece.text += line;
    offset_ += line.size();
    document_bytes_ += line.size();
    previous_ended_ = line.ends_with('\n');
    previous_blank_ = previous_ended_ && is_blank(line);
    pending_ = {};
  }
  bool is_separator(std::string_view line) const {
    return rule_.kind == DocumentKind::separator && previous_ended_ &&
           without_line_end(line) == rule_.separator;
  }
  bool begins_document(std::string_view line) const {
    switch (rule_.kind) {
      case DocumentKind::titles:
        return previous_blank_ && is_title(line);
      case DocumentKind::paragraphs:
        return previous_blank_ && !is_blank(line);
      case DocumentKind::lines:
        return previous_ended_;
      case DocumentKind::blocks:
        return document_bytes_ >= kDocumentBlockBytes;
      default:
        return false;
    }
  }

  std::string name_;
  std::optional<Split> split_;
  DocumentRule rule_;
  LineReader lines_;
  std::string_view pending_;  // a line looked at but not yet taken
  std::uint64_t offset_;
  std::uint64_t document_bytes_ = 0;
  bool previous_ended_ = true;
  bool previous_blank_ = true;
};

CorpusReader::CorpusReader(const std::vector<CorpusSource>& sources, DocumentRule rule)
    : rule_(std::move(rule)) {
  bool known = true;
  try {
    for (const CorpusSource& source : sources) known &= add_source(source);
    for (const File& file : files_) total_bytes_ += known ? fs::file_size(file.path) : 0;
  } catch (const fs::filesystem_error& error) {
    throw DataError(fmt::format("{}: {}", error.path1().string(), error.code().message()));
  }
}

/// Lists the source's files; false when their sizes cannot be known beforehand.
bool CorpusReader::add_source(const CorpusSource& source) {
  if (source.path == "-") {
    files_.push_back({source.path, source.split, "standard input", false});
    return false;
  }
  const fs::file_status status = fs::status(source.path);
  if (!fs::exists(status)) {
    throw DataError(fmt::format("{}: no such file or folder", source.path.string()));
  }
  if (!fs::is_directory(status)) {
    files_.push_back({source.path, source.split,
                      source.name.empty() ? source.path.string() : source.name, false});
    return fs::is_regular_file(status);
  }
  const std::size_t before = files_.size();
  for (auto walk = fs::recursive_directory_iterator(source.path); walk != fs::end(walk); ++walk) {
    const bool hidden = walk->path().filename().string().starts_with('.');
    if (hidden && walk->is_directory()) walk.disable_recursion_pending();
    if (hidden || !walk->is_regular_file()) continue;
    files_.push_back({walk->path(), source.split, walk->path().string(), true});
  }
  if (files_.size() == before) {
    throw DataError(fmt::format("{}: this folder holds no file", source.path.string()));
  }
  std::sort(files_.begin() + static_cast<std::ptrdiff_t>(before), files_.end(),
            [](const File& a, const File& b) { return a.path.native() < b.path.native(); });
  return true;
}

CorpusReader::~CorpusReader() = default;

/// The next file, or the next text of a JSONL file; false at the end of the corpus.
bool CorpusReader::open_next() {
  if (json_lines_) {
    const File& file = files_[next_file_ - 1];
    std::string text;
    if (json_lines_->next(text)) {
      current_ = std::make_unique<Document>(file, DocumentRule{DocumentKind::file, ""},
                                            LineReader(text), json_lines_->line_offset());
      return true;
    }
    finished_bytes_ += json_lines_->consumed();
    json_lines_.reset();
  }
  if (next_file_ == files_.size()) return false;
  const File& file = files_[next_file_++];
  LineReader lines(open_byte_source(file.path));
  const std::string field = rule_.text_field.empty() ? "text" : rule_.text_field;
  const bool looks_so = !rule_.text_field.empty() || is_json_lines_name(file.path) ||
                        looks_like_json_lines(lines.peek(), field);
  if (rule_.kind == DocumentKind::jsonl || (rule_.kind == DocumentKind::automatic && looks_so)) {
    json_lines_ = std::make_unique<JsonLines>(std::move(lines), field, file.name);
    return open_next();
  }
  current_ = std::make_unique<Document>(file, rule_, std::move(lines));
  return true;
}

bool CorpusReader::next(Piece& piece) {
  for (;;) {
    if (!current_ && !open_next()) return false;
    if (current_->next(piece)) return true;
    if (!json_lines_) finished_bytes_ += current_->consumed();
    current_.reset();
  }
}

std::uint64_t CorpusReader::consumed_bytes() const {
  if (json_lines_) return finished_bytes_ + json_lines_->consumed();
  return finished_bytes_ + (current_ ? current_->consumed() : 0);
}

}  // namespace fathom::data
