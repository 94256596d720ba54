// A corpus as a stream of documents.
//
// Sources are read in order; a folder is its regular files, sorted by path, hidden ones left out.
// The DocumentRule says how a source is split into documents. Every byte of the input belongs to
// exactly one document (lines equal to a separator and JSONL excepted), so concatenating the
// documents gives the input back. Empty documents do not count.
//
// A document may be larger than memory: it comes in pieces of about 1 MiB that end at a line end,
// or, inside a line longer than 64 KiB, before a space or at least between two characters. Where
// pieces end depends on the document's text alone. Memory: two pieces.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/split.h"

namespace fathom::data {

class JsonLines;

enum class DocumentKind {
  automatic,  // `jsonl` where the name (.jsonl, .ndjson) or the first line says so; `file` inside a
              // folder; else `titles` if the first line is a title, else `blocks`
  file,       // one source file is one document
  titles,     // "= Title =" on a line of its own, first or after a blank line, begins a document
  paragraphs,  // a blank line ends a document
  lines,       // each line is a document
  blocks,      // 16 KiB or more, up to the next line end; no end-of-document token
  separator,   // a line equal to a given text ends a document and is dropped
  jsonl,       // each line is a JSON object with the document in one field
};
constexpr auto enum_names(DocumentKind) {
  return std::array{"auto",  "file",   "titles",    "paragraphs",
                    "lines", "blocks", "separator", "jsonl"};
}

struct DocumentRule {
  DocumentKind kind = DocumentKind::automatic;
  std::string separator{};
  std::string text_field{};  // of JSONL; naming one makes `automatic` jsonl; empty: "text"
};

struct CorpusSource {
  std::filesystem::path path;  // file, folder or "-"
  /// Where all its documents go; by hash when absent.
  std::optional<Split> split;
  /// Its name in messages; the path when empty.
  std::string name;
};

struct Piece {
  std::string text;
  std::string origin;        // the file, for messages
  std::uint64_t offset = 0;  // of text in the unpacked file
  std::optional<Split> split;
  bool begins_document = false;
  bool ends_document = false;
  bool end_token = true;  // false under DocumentKind::blocks
};

class CorpusReader {
 public:
  /// DataError when a source does not exist or a folder holds no file.
  CorpusReader(const std::vector<CorpusSource>& sources, DocumentRule rule);
  ~CorpusReader();

  /// The next piece, or false at the end of the corpus.
  bool next(Piece& piece);

  /// Bytes of the input files read so far and in all (0 when unknown, as for standard input).
  std::uint64_t consumed_bytes() const;
  std::uint64_t total_bytes() const { return total_bytes_; }

 private:
  class Document;
  struct File {
    std::filesystem::path path;
    std::optional<Split> split;
    std::string name;
    bool in_folder;
  };
  bool add_source(const CorpusSource& source);
  bool open_next();

  std::vector<File> files_;
  DocumentRule rule_;
  std::size_t next_file_ = 0;
  std::uint64_t finished_bytes_ = 0;
  std::uint64_t total_bytes_ = 0;
  std::unique_ptr<JsonLines> json_lines_;  // of the current file, where it is JSONL
  std::unique_ptr<Document> current_;
};

}  // namespace fathom::data
