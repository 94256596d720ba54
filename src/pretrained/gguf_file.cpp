#include "pretrained/gguf_file.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"

namespace fathom::pretrained {
namespace {

using Json = nlohmann::json;

/// Reads front to back and never past the end.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, const std::string& origin)
      : bytes_(bytes), origin_(origin) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(
        fmt::format("{}: not a GGUF file Fathom can read: {} (byte {})", origin_, what, position_));
  }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string text() {
    const auto length = number<std::uint64_t>();
    const auto bytes = take(length);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::span<const std::byte> take(std::uint64_t count) {
    if (count > bytes_.size() - position_) fail("it ends too early");
    position_ += count;
    return bytes_.subspan(position_ - count, count);
  }
  std::size_t position() const { return position_; }
  std::size_t left() const { return bytes_.size() - position_; }

 private:
  std::span<const std::byte> bytes_;
  const std::string& origin_;
  std::size_t position_ = 0;
};

constexpr std::uint32_t kText = 8, kArray = 9;

Json read_value(Cursor& in, std::uint32_t type);

Json read_array(Cursor& in) {
  const auto inner = in.number<std::uint32_t>();
  const auto count = in.number<std::uint64_t>();
  if (inner == kArray) in.fail("an array of arrays");
  if (count > in.left()) in.fail("an array longer than the file");
  Json list = Json::array();
  for (std::uint64_t i = 0; i < count; ++i) list.push_back(read_value(in, inner));
  return list;
}

Json read_value(Cursor& in, std::uint32_t type) {
  switch (type) {
    case 0:
      return in.number<std::uint8_t>();
    case 1:
      return in.number<std::int8_t>();
    case 2:
      return in.number<std::uint16_t>();
    case 3:
      return in.number<std::int16_t>();
    case 4:
      return in.number<std::uint32_t>();
    case 5:
      return in.number<std::int32_t>();
    case 6:
      return in.number<float>();
    case 7:
      return in.number<std::uint8_t>() != 0;
    case kText:
      return in.text();
    case kArray:
      return read_array(in);
    case 10:
      return in.number<std::uint64_t>();
    case 11:
      return in.number<std::int64_t>();
    case 12:
      return in.number<double>();
    default:
      in.fail(fmt::format("a value of type {}", type));
  }
}

struct Entry {
  std::string name;
  TensorShape shape;
  std::uint32_t type = 0;
  std::uint64_t offset = 0;
};

Entry read_entry(Cursor& in) {
  Entry entry;
  entry.name = in.text();
  const auto dimensions = in.number<std::uint32_t>();
  if (dimensions == 0 || dimensions > 4) in.fail("a tensor without 1 to 4 dimensions");
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    entry.shape.insert(entry.shape.begin(), in.number<std::uint64_t>());
  }
  entry.type = in.number<std::uint32_t>();
  entry.offset = in.number<std::uint64_t>();
  return entry;
}

std::uint64_t elements_of(const Cursor& in, const TensorShape& shape) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 48;
  std::uint64_t count = 1;
  for (const std::uint64_t size : shape) {
    if (size == 0 || size > kMost / count) in.fail("a tensor of an impossible size");
    count *= size;
  }
  return count;
}

GgufTensor place(const Cursor& in, const Entry& entry, std::span<const std::byte> data) {
  GgufTensor tensor{entry.shape, find_ggml_type(entry.type), {}};
  if (tensor.type == nullptr) {
    in.fail(fmt::format("{} has number format {}; known: {}", printable(entry.name), entry.type,
                        ggml_type_names()));
  }
  const std::uint64_t count = elements_of(in, entry.shape);
  if (entry.shape.back() % tensor.type->weights != 0) {
    in.fail(fmt::format("{}: rows are not whole blocks", printable(entry.name)));
  }
  const std::uint64_t bytes = count / tensor.type->weights * tensor.type->bytes;
  if (entry.offset > data.size() || bytes > data.size() - entry.offset) {
    in.fail(fmt::format("{} lies outside the file", printable(entry.name)));
  }
  tensor.bytes = data.subspan(entry.offset, bytes);
  return tensor;
}

}  // namespace

GgufFile::GgufFile(const std::filesystem::path& path)
    : origin_(path.string()), file_(path), keys_(std::make_unique<Json>(Json::object())) {
  static_assert(std::endian::native == std::endian::little);
  Cursor in(file_.bytes(), origin_);
  if (in.left() < 24 || std::memcmp(in.take(4).data(), "GGUF", 4) != 0) in.fail("no GGUF header");
  const auto version = in.number<std::uint32_t>();
  if (version != 2 && version != 3) in.fail(fmt::format("version {}", version));
  const auto tensors = in.number<std::uint64_t>(), keys = in.number<std::uint64_t>();
  for (std::uint64_t i = 0; i < keys; ++i) {
    std::string name = in.text();
    const auto type = in.number<std::uint32_t>();
    (*keys_)[std::move(name)] = read_value(in, type);
  }
  std::vector<Entry> entries;
  for (std::uint64_t i = 0; i < tensors; ++i) entries.push_back(read_entry(in));
  const auto found = keys_->find("general.alignment");
  const std::uint64_t alignment =
      found != keys_->end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 32;
  if (alignment == 0 || alignment > (1u << 20)) in.fail("a bad general.alignment");
  const std::uint64_t start = (in.position() + alignment - 1) / alignment * alignment;
  if (start > file_.bytes().size()) in.fail("it ends too early");
  const auto data = file_.bytes().subspan(start);
  for (const Entry& entry : entries) {
    if (!tensors_.emplace(entry.name, place(in, entry, data)).second) {
      in.fail(fmt::format("two tensors are called {}", printable(entry.name)));
    }
  }
}

GgufFile::~GgufFile() = default;

}  // namespace fathom::pretrained
