#include "data/byte_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <lzma.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "core/counts.h"
#include "core/error.h"
#include "core/pipe.h"
#include "core/uninterrupted.h"

namespace fathom::data {
namespace {

constexpr std::size_t kBufferBytes = 256 << 10;
constexpr std::uint64_t kXzMemoryLimit = 512ull << 20;

/// The file itself. Its first bytes may be looked at before they are read.
class PlainSource : public ByteSource {
 public:
  /// `pipe`: one that was opened without waiting for its writer.
  PlainSource(int file, std::string name, bool pipe)
      : file_(file), name_(std::move(name)), unread_pipe_(pipe) {
    buffer_.resize(kBufferBytes);
  }
  ~PlainSource() override {
    if (file_ != STDIN_FILENO) close(file_);
  }

  std::size_t read(std::span<char> out) override {
    if (begin_ == end_ && out.size() >= kBufferBytes) return fetch(out);
    if (begin_ == end_) refill();
    const std::size_t count = std::min(out.size(), end_ - begin_);
    std::memcpy(out.data(), buffer_.data() + begin_, count);
    begin_ += count;
    return count;
  }
  std::uint64_t consumed() const override { return consumed_ - (end_ - begin_); }

  /// Up to `count` bytes ahead, fewer only at the end of the file.
  std::string_view peek(std::size_t count) {
    while (end_ - begin_ < count) {
      const std::size_t got = fetch(std::span(buffer_).subspan(end_, count - (end_ - begin_)));
      if (got == 0) break;
      end_ += got;
    }
    return {buffer_.data() + begin_, end_ - begin_};
  }
  const std::string& name() const { return name_; }

 private:
  void refill() {
    begin_ = 0;
    end_ = 0;  // consumed() must not see bytes that are already read
    end_ = fetch(buffer_);
  }
  std::size_t fetch(std::span<char> out) {
    const bool first_of_pipe = std::exchange(unread_pipe_, false);
    const ssize_t count =
        first_of_pipe ? read_pipe_first(file_, name_, out.data(), out.size())
                      : uninterrupted([&] { return ::read(file_, out.data(), out.size()); });
    if (count < 0) throw DataError(fmt::format("{}: {}", name_, std::strerror(errno)));
    consumed_ += as_size(count);
    return as_size(count);
  }

  int file_;
  std::string name_;
  bool unread_pipe_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t consumed_ = 0;
};

/// What the decoders share: the packed input and the position in it.
class PackedSource : public ByteSource {
 public:
  explicit PackedSource(std::unique_ptr<PlainSource> packed) : packed_(std::move(packed)) {
    buffer_.resize(kBufferBytes);
  }
  std::uint64_t consumed() const override { return packed_->consumed(); }

 protected:
  std::span<char> next_input() { return std::span(buffer_).first(packed_->read(buffer_)); }
  [[noreturn]] void fail(std::string_view what) const {
    throw DataError(fmt::format("{}: {}", packed_->name(), what));
  }

 private:
  std::unique_ptr<PlainSource> packed_;
  std::vector<char> buffer_;
};

class XzSource : public PackedSource {
 public:
  explicit XzSource(std::unique_ptr<PlainSource> packed) : PackedSource(std::move(packed)) {
    if (lzma_stream_decoder(&stream_, kXzMemoryLimit, LZMA_CONCATENATED) != LZMA_OK) {
      fail("the xz decoder cannot start (memory)");
    }
  }
  ~XzSource() override { lzma_end(&stream_); }

  std::size_t read(std::span<char> out) override {
    stream_.next_out = reinterpret_cast<std::uint8_t*>(out.data());
    stream_.avail_out = out.size();
    while (!done_ && stream_.avail_out == out.size()) {
      if (stream_.avail_in == 0 && !input_ended_) {
        const std::span<char> input = next_input();
        input_ended_ = input.empty();
        stream_.next_in = reinterpret_cast<const std::uint8_t*>(input.data());
        stream_.avail_in = input.size();
      }
      switch (lzma_code(&stream_, input_ended_ ? LZMA_FINISH : LZMA_RUN)) {
        case LZMA_OK:
          break;
        case LZMA_STREAM_END:
          done_ = true;
          break;
        case LZMA_MEMLIMIT_ERROR:
          fail("this xz file needs more than 512 MiB to unpack");
        case LZMA_BUF_ERROR:
          fail("the xz data ends early");
        default:
          fail("the xz data is damaged");
      }
    }
    return out.size() - stream_.avail_out;
  }

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool input_ended_ = false;
  bool done_ = false;
};

class ZstdSource : public PackedSource {
 public:
  explicit ZstdSource(std::unique_ptr<PlainSource> packed) : PackedSource(std::move(packed)) {
    if (stream_ == nullptr) fail("the zstd decoder cannot start (memory)");
  }
  ~ZstdSource() override { ZSTD_freeDStream(stream_); }

  std::size_t read(std::span<char> out) override {
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    while (output.pos == 0) {
      if (input_.pos == input_.size && !flushing_) {
        const std::span<char> next = next_input();
        if (next.empty()) {
          if (inside_frame_) fail("the zstd data ends early");
          break;
        }
        input_ = {next.data(), next.size(), 0};
      }
      const std::size_t left = ZSTD_decompressStream(stream_, &output, &input_);
      if (ZSTD_isError(left)) {
        fail(fmt::format("the zstd data cannot be unpacked ({})", ZSTD_getErrorName(left)));
      }
      inside_frame_ = left != 0;
      // A full output buffer may hide more output of input already taken.
      flushing_ = inside_frame_ && output.pos == output.size;
    }
    return output.pos;
  }

 private:
  ZSTD_DStream* stream_ = ZSTD_createDStream();
  ZSTD_inBuffer input_{nullptr, 0, 0};
  bool inside_frame_ = false;
  bool flushing_ = false;
};

/// gzip, also several members one after the other as pigz and cat make them.
class GzipSource : public PackedSource {
 public:
  explicit GzipSource(std::unique_ptr<PlainSource> packed) : PackedSource(std::move(packed)) {
    constexpr int kGzipOnly = 16;  // zlib's code: expect a gzip header
    if (inflateInit2(&stream_, kGzipOnly + MAX_WBITS) != Z_OK) {
      fail("the gzip decoder cannot start (memory)");
    }
  }
  ~GzipSource() override { inflateEnd(&stream_); }

  std::size_t read(std::span<char> out) override {
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(std::min<std::size_t>(out.size(), 1u << 30));
    const uInt room = stream_.avail_out;
    while (stream_.avail_out == room) {
      if (stream_.avail_in == 0) {
        const std::span<char> input = next_input();
        if (input.empty()) {
          if (inside_member_) fail("the gzip data ends early");
          break;
        }
        stream_.next_in = reinterpret_cast<Bytef*>(input.data());
        stream_.avail_in = static_cast<uInt>(input.size());
      }
      inside_member_ = true;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      if (status == Z_STREAM_END) {
        inside_member_ = false;
        inflateReset(&stream_);
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        fail("the gzip data is damaged");
      }
    }
    return room - stream_.avail_out;
  }

 private:
  z_stream stream_{};
  bool inside_member_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> open_byte_source(const std::filesystem::path& path) {
  const bool standard_input = path == "-";
  const std::string name = standard_input ? "standard input" : path.string();
  // Opened with O_NONBLOCK: a pipe without a writer would otherwise block forever.
  const int file = standard_input ? STDIN_FILENO : uninterrupted([&] {
    return open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  });
  if (file < 0) throw DataError(fmt::format("{}: {}", name, std::strerror(errno)));
  struct stat status {};
  const bool known = fstat(file, &status) == 0;
  const bool pipe = !standard_input && known && S_ISFIFO(status.st_mode);
  auto plain = std::make_unique<PlainSource>(file, name, pipe);
  if (known && S_ISDIR(status.st_mode)) {
    throw DataError(fmt::format("{}: is a folder, a file was expected", name));
  }
  if (!standard_input && !pipe) fcntl(file, F_SETFL, 0);
  using namespace std::string_view_literals;
  const std::string_view head = plain->peek(6);
  if (head.starts_with("\xFD"
                       "7zXZ\0"sv)) {
    return std::make_unique<XzSource>(std::move(plain));
  }
  if (head.starts_with("\x28\xB5\x2F\xFD"sv)) return std::make_unique<ZstdSource>(std::move(plain));
  if (head.starts_with("\x1F\x8B"sv)) return std::make_unique<GzipSource>(std::move(plain));
  if (head.starts_with("PK\x03\x04"sv)) {
    throw DataError(
        fmt::format("{}: zip is not read; pipe it: unzip -p FILE | fathom data prepare -", name));
  }
  return plain;
}

}  // namespace fathom::data
