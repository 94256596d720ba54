#include "data/token_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "core/checksum.h"
#include "core/counts.h"
#include "core/error.h"

namespace fathom::data {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

constexpr char kMagic[8] = {'F', 'A', 'T', 'H', 'O', 'M', 'T', 'K'};
constexpr std::uint32_t kVersion = 2;
constexpr std::uint32_t kWithoutBlocks = 1;
constexpr std::uint64_t kBlockBytes = 64 << 10;
/// Ids are TokenId, a signed 32-bit type.
constexpr std::uint64_t kMaxVocabulary = (1ull << 31) - 1;

struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t bytes_per_id;
  std::uint64_t vocabulary;
  std::uint64_t count;
  std::uint64_t documents;
  std::uint64_t text_bytes;
  Hash128 content;
  Hash128 tokenizer;
  Hash128 blocks;
  std::uint64_t reserved[2];
  Hash128 header;
};
static_assert(sizeof(Header) == 128);

Hash128 header_hash(const Header& header) {
  return hash_bytes({reinterpret_cast<const char*>(&header), offsetof(Header, header)});
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Hash128 hash_of(const std::vector<std::uint64_t>& block_hashes) {
  return hash_bytes(text_of(std::as_bytes(std::span(block_hashes))));
}

std::uint64_t blocks_of(std::uint64_t body) {
  return (body + kBlockBytes - 1) / kBlockBytes;
}

Header make_header(const TokenFileInfo& info, const std::vector<std::uint64_t>& block_hashes) {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kVersion;
  header.bytes_per_id = info.bytes_per_id;
  header.vocabulary = info.vocabulary;
  header.count = info.count;
  header.documents = info.documents;
  header.text_bytes = info.text_bytes;
  header.content = info.content;
  header.tokenizer = info.tokenizer;
  header.blocks = hash_of(block_hashes);
  header.header = header_hash(header);
  return header;
}

Header read_header(std::span<const std::byte> bytes, const std::string& name) {
  const auto fail = [&](const std::string& what) {
    throw DataError(fmt::format("{}: {}", name, what));
  };
  Header header;
  if (bytes.size() < sizeof header) fail("too short for a token file");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) fail("not a token file");
  if (header.version != kVersion && header.version != kWithoutBlocks) {
    fail(
        fmt::format("token file version {}, this program reads {} and {}; prepare the corpus again",
                    header.version, kWithoutBlocks, kVersion));
  }
  if (header.header != header_hash(header)) fail("the header is damaged (its hash differs)");
  if (header.vocabulary == 0 || header.vocabulary > kMaxVocabulary) {
    fail(fmt::format("vocabulary {} is out of range", header.vocabulary));
  }
  if (header.bytes_per_id != bytes_per_id(header.vocabulary)) {
    fail(fmt::format("{} bytes per id do not fit vocabulary {}", header.bytes_per_id,
                     header.vocabulary));
  }
  const std::uint64_t rest = bytes.size() - sizeof header;
  const bool plausible = header.count <= rest / header.bytes_per_id;
  const std::uint64_t body = plausible ? header.count * header.bytes_per_id : 0;
  const std::uint64_t hashes =
      header.version == kWithoutBlocks ? 0 : blocks_of(body) * sizeof(std::uint64_t);
  if (!plausible || body + hashes != rest) {
    fail(fmt::format("{} ids of {} bytes announced, {} bytes follow the header", header.count,
                     header.bytes_per_id, rest));
  }
  const bool zeros = header.reserved[0] == 0 && header.reserved[1] == 0 &&
                     (header.version == kVersion || header.blocks == Hash128{});
  if (!zeros) fail("reserved header bytes are not zero");
  return header;
}

/// Empty for version 1.
std::vector<std::uint64_t> read_block_hashes(std::span<const std::byte> bytes, const Header& header,
                                             const std::string& name) {
  if (header.version == kWithoutBlocks) return {};
  const std::uint64_t body = header.count * header.bytes_per_id;
  std::vector<std::uint64_t> hashes(blocks_of(body));
  if (!hashes.empty()) {
    std::memcpy(hashes.data(), bytes.data() + sizeof header + body,
                hashes.size() * sizeof hashes[0]);
  }
  if (hash_of(hashes) != header.blocks) {
    throw DataError(fmt::format("{}: the hashes of its blocks are damaged", name));
  }
  return hashes;
}

template <typename Stored>
TokenId copy_ids(const std::byte* from, std::span<TokenId> out) {
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    Stored id;
    std::memcpy(&id, from + i * sizeof id, sizeof id);
    largest = std::max<std::uint32_t>(largest, id);
    out[i] = static_cast<TokenId>(id);
  }
  return static_cast<TokenId>(std::min<std::uint32_t>(largest, 0x7fffffff));
}

}  // namespace

std::uint32_t bytes_per_id(std::uint64_t vocabulary) {
  return vocabulary <= 65536 ? 2 : 4;
}

TokenFile::TokenFile(const std::filesystem::path& path) : name_(path.string()), file_(path) {
  const Header header = read_header(file_.bytes(), name_);
  info_ = {header.vocabulary,   header.count,   header.documents, header.text_bytes,
           header.bytes_per_id, header.content, header.tokenizer};
  block_hashes_ = read_block_hashes(file_.bytes(), header, name_);
  const std::size_t blocks = header.version == kWithoutBlocks ? 1 : block_hashes_.size();
  checked_ = std::vector<std::atomic<bool>>(verification_is_on() ? blocks : 0);
}

std::span<const std::byte> TokenFile::body() const {
  return file_.bytes().subspan(sizeof(Header), info_.count * info_.bytes_per_id);
}

std::span<const std::byte> TokenFile::block(std::size_t index) const {
  if (block_hashes_.empty()) return body();
  const std::uint64_t first = index * kBlockBytes;
  return body().subspan(first, std::min<std::uint64_t>(kBlockBytes, body().size() - first));
}

void TokenFile::check_blocks(std::uint64_t first_byte, std::uint64_t end_byte) const {
  if (checked_.empty() || first_byte == end_byte) return;
  const bool whole = block_hashes_.empty();
  const std::size_t first = whole ? 0 : first_byte / kBlockBytes;
  const std::size_t end = whole ? 1 : blocks_of(end_byte);
  for (std::size_t b = first; b < end; ++b) {
    if (checked_[b].load(std::memory_order_acquire)) continue;
    const std::span<const std::byte> bytes = block(b);
    const Hash128 hash = hash_bytes(text_of(bytes));
    if (whole ? hash != info_.content : hash.low != block_hashes_[b]) {
      const std::uint64_t id = static_cast<std::uint64_t>(bytes.data() - body().data());
      throw DataError(fmt::format(
          "{}: damaged among ids {}..{} (their hash differs); restore it "
          "or prepare the corpus again",
          name_, id / info_.bytes_per_id, (id + bytes.size()) / info_.bytes_per_id - 1));
    }
    checked_[b].store(true, std::memory_order_release);
  }
}

std::uint64_t TokenFile::checked_bytes() const {
  std::uint64_t sum = 0;
  for (std::size_t b = 0; b < checked_.size(); ++b) {
    if (checked_[b].load(std::memory_order_acquire)) sum += block(b).size();
  }
  return sum;
}

void TokenFile::copy(std::uint64_t start, std::span<TokenId> out) const {
  if (start > info_.count || out.size() > info_.count - start) {
    throw InternalError(fmt::format("{}: ids {}..{} requested, there are {}", name_, start,
                                    start + out.size(), info_.count));
  }
  file_.require_whole();
  check_blocks(start * info_.bytes_per_id, (start + out.size()) * info_.bytes_per_id);
  const std::byte* from = body().data() + start * info_.bytes_per_id;
  const TokenId largest = info_.bytes_per_id == 2 ? copy_ids<std::uint16_t>(from, out)
                                                  : copy_ids<std::uint32_t>(from, out);
  if (!out.empty() && as_size(largest) >= info_.vocabulary) {
    throw DataError(fmt::format("{}: an id among {}..{} is outside the vocabulary of {}", name_,
                                start, start + out.size(), info_.vocabulary));
  }
}

std::span<const std::byte> TokenFile::ids() const {
  // Block by block: what was hashed is still in the processor's cache when the ids are looked at.
  std::vector<TokenId> checked(kBlockBytes / info_.bytes_per_id);
  for (std::uint64_t start = 0; start < info_.count; start += checked.size()) {
    const std::uint64_t count = std::min<std::uint64_t>(checked.size(), info_.count - start);
    copy(start, std::span(checked).first(count));
  }
  return body();
}

void TokenFile::verify() const {
  if (!verification_is_on()) return;
  file_.require_whole();
  if (hash_bytes(text_of(body())) != info_.content) {
    throw DataError(fmt::format("{}: the ids are damaged (their hash differs)", name_));
  }
}

TokenFileWriter::TokenFileWriter(const std::filesystem::path& path, std::uint64_t vocabulary,
                                 Hash128 tokenizer)
    : file_(path) {
  info_.vocabulary = vocabulary;
  info_.tokenizer = tokenizer;
  info_.bytes_per_id = bytes_per_id(vocabulary);
  const Header blank{};
  file_.write(&blank, sizeof blank);
}

void TokenFileWriter::add(std::span<const TokenId> ids) {
  for (const TokenId id : ids) {
    if (id < 0 || as_size(id) >= info_.vocabulary) {
      throw InternalError(
          fmt::format("token {} outside the vocabulary of {}", id, info_.vocabulary));
    }
  }
  const auto store = [&](const void* data, std::size_t bytes) {
    hash(data, bytes);
    file_.write(data, bytes);
  };
  if (info_.bytes_per_id == 2) {
    const std::vector<std::uint16_t> narrow(ids.begin(), ids.end());
    store(narrow.data(), narrow.size() * sizeof(std::uint16_t));
  } else {
    store(ids.data(), ids.size_bytes());
  }
  info_.count += ids.size();
}

void TokenFileWriter::hash(const void* data, std::size_t bytes) {
  hasher_.add(data, bytes);
  for (const char* at = static_cast<const char*>(data); bytes > 0;) {
    const std::size_t part = std::min<std::size_t>(bytes, kBlockBytes - block_fill_);
    block_hasher_.add(at, part);
    block_fill_ += part;
    at += part;
    bytes -= part;
    if (block_fill_ < kBlockBytes) continue;
    block_hashes_.push_back(std::exchange(block_hasher_, Hasher()).value().low);
    block_fill_ = 0;
  }
}

const TokenFileInfo& TokenFileWriter::commit() {
  info_.content = hasher_.value();
  if (block_fill_ > 0) block_hashes_.push_back(block_hasher_.value().low);
  file_.write(block_hashes_.data(), block_hashes_.size() * sizeof block_hashes_[0]);
  const Header header = make_header(info_, block_hashes_);
  file_.rewrite(0, &header, sizeof header);
  file_.commit();
  return info_;
}

}  // namespace fathom::data
