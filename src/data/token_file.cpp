#include "data/token_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "core/checksum.h"
#include "core/counts.h"
#include "core/error.h"

namespace fathom::data {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

constexpr char kMagic[8] = {'F', 'A', 'T', 'H', 'O', 'M', 'T', 'K'};
constexpr std::uint32_t kVersion = 1;
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
  std::uint64_t reserved[4];
  Hash128 header;
};
static_assert(sizeof(Header) == 128);

Hash128 header_hash(const Header& header) {
  return hash_bytes({reinterpret_cast<const char*>(&header), offsetof(Header, header)});
}

Header make_header(const TokenFileInfo& info) {
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
  header.header = header_hash(header);
  return header;
}

TokenFileInfo read_header(std::span<const std::byte> bytes, const std::string& name) {
  const auto fail = [&](const std::string& what) {
    throw DataError(fmt::format("{}: {}", name, what));
  };
  Header header;
  if (bytes.size() < sizeof header) fail("too short for a token file");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) fail("not a token file");
  if (header.version != kVersion) {
    fail(fmt::format("token file version {}, this program reads {}; prepare the corpus again",
                     header.version, kVersion));
  }
  if (header.header != header_hash(header)) fail("the header is damaged (its hash differs)");
  if (header.vocabulary == 0 || header.vocabulary > kMaxVocabulary) {
    fail(fmt::format("vocabulary {} is out of range", header.vocabulary));
  }
  if (header.bytes_per_id != bytes_per_id(header.vocabulary)) {
    fail(fmt::format("{} bytes per id do not fit vocabulary {}", header.bytes_per_id,
                     header.vocabulary));
  }
  const std::uint64_t body = bytes.size() - sizeof header;
  if (header.count > body / header.bytes_per_id || header.count * header.bytes_per_id != body) {
    fail(fmt::format("{} ids of {} bytes announced, {} bytes follow the header", header.count,
                     header.bytes_per_id, body));
  }
  if (std::ranges::any_of(header.reserved, [](std::uint64_t word) { return word != 0; })) {
    fail("reserved header bytes are not zero");
  }
  return {header.vocabulary,   header.count,   header.documents, header.text_bytes,
          header.bytes_per_id, header.content, header.tokenizer};
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

TokenFile::TokenFile(const std::filesystem::path& path)
    : name_(path.string()), file_(path), info_(read_header(file_.bytes(), name_)) {}

void TokenFile::copy(std::uint64_t start, std::span<TokenId> out) const {
  if (start > info_.count || out.size() > info_.count - start) {
    throw InternalError(fmt::format("{}: ids {}..{} requested, there are {}", name_, start,
                                    start + out.size(), info_.count));
  }
  file_.require_whole();
  const std::byte* from = file_.bytes().data() + sizeof(Header) + start * info_.bytes_per_id;
  const TokenId largest = info_.bytes_per_id == 2 ? copy_ids<std::uint16_t>(from, out)
                                                  : copy_ids<std::uint32_t>(from, out);
  if (!out.empty() && as_size(largest) >= info_.vocabulary) {
    throw DataError(fmt::format("{}: an id among {}..{} is outside the vocabulary of {}", name_,
                                start, start + out.size(), info_.vocabulary));
  }
}

std::span<const std::byte> TokenFile::ids() const {
  std::vector<TokenId> checked(1 << 16);
  for (std::uint64_t start = 0; start < info_.count; start += checked.size()) {
    const std::uint64_t count = std::min<std::uint64_t>(checked.size(), info_.count - start);
    copy(start, std::span(checked).first(count));
  }
  return file_.bytes().subspan(sizeof(Header));
}

void TokenFile::verify() const {
  if (!verification_is_on()) return;
  file_.require_whole();
  const auto body = file_.bytes().subspan(sizeof(Header));
  if (hash_bytes({reinterpret_cast<const char*>(body.data()), body.size()}) != info_.content) {
    throw DataError(fmt::format("{}: the ids are damaged (their hash differs)", name_));
  }
}

TokenFileWriter::TokenFileWriter(std::filesystem::path path, std::uint64_t vocabulary,
                                 Hash128 tokenizer)
    : file_(std::move(path)) {
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
    hasher_.add(data, bytes);
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

const TokenFileInfo& TokenFileWriter::commit() {
  info_.content = hasher_.value();
  const Header header = make_header(info_);
  file_.rewrite(0, &header, sizeof header);
  file_.commit();
  return info_;
}

}  // namespace fathom::data
