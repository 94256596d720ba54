// Lines of a byte source or a text, in fragments of at most 64 KiB.
//
// A longer line is cut before its last space within the limit, else between two characters.
// Memory: one buffer of 512 KiB.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "data/byte_source.h"

namespace fathom::data {

class LineReader {
 public:
  explicit LineReader(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}
  /// Of a text in memory, which is copied.
  explicit LineReader(std::string_view text)
      : buffer_(text.begin(), text.end()), end_(text.size()), ended_(true) {}

  /// The next fragment, valid until the next call; empty at the end. A fragment that does not end
  /// the line lacks the line end.
  std::string_view next() {
    begin_ += taken_;
    taken_ = look().size();
    return {buffer_.data() + begin_, taken_};
  }
  /// The fragment that next() will return; only before the first next().
  std::string_view peek() { return look(); }
  std::uint64_t consumed() const { return source_ ? source_->consumed() : begin_ + taken_; }

 private:
  std::string_view look();
  void fill();

  std::unique_ptr<ByteSource> source_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t taken_ = 0;
  bool ended_ = false;
};

/// The line without "\n" or "\r\n".
std::string_view without_line_end(std::string_view line);

}  // namespace fathom::data
