#include "core/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <unordered_set>

#include "core/checksum.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"

namespace fathom {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

/// Room for some 100,000 tensors; a larger header would only serve to exhaust memory.
constexpr std::uint64_t kHeaderLimitBytes = 16u << 20;
constexpr std::size_t kAlignment = 64;
/// Metadata: the digits of every tensor in the order of the data.
constexpr const char* kTensorChecksums = "tensor_checksums";
constexpr std::string_view kOpenDigits = kOpenChecksum.substr(kOpenChecksum.find(':') + 1);

struct TypeEntry {
  TensorType type;
  const char* name;
  std::size_t bytes;
};
constexpr std::array<TypeEntry, 13> kTypes{{{TensorType::f64, "F64", 8},
                                            {TensorType::f32, "F32", 4},
                                            {TensorType::f16, "F16", 2},
                                            {TensorType::bf16, "BF16", 2},
                                            {TensorType::i64, "I64", 8},
                                            {TensorType::i32, "I32", 4},
                                            {TensorType::i16, "I16", 2},
                                            {TensorType::i8, "I8", 1},
                                            {TensorType::u64, "U64", 8},
                                            {TensorType::u32, "U32", 4},
                                            {TensorType::u16, "U16", 2},
                                            {TensorType::u8, "U8", 1},
                                            {TensorType::boolean, "BOOL", 1}}};

/// False on overflow.
bool size_in_bytes(const TensorSpec& tensor, std::uint64_t& bytes) {
  bytes = bytes_of(tensor.type);
  for (const std::uint64_t extent : tensor.shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return false;
  }
  return true;
}

/// Looks at a header before it is kept: the DOM keeps the last of two equal keys, only the parser's
/// events show both. (A DOM parser with a callback does, too, in time quadratic in the tensors.)
struct HeaderWatch : nlohmann::json_sax<nlohmann::json> {
  static constexpr int kDeepest = 5;
  std::string complaint;
  std::vector<std::unordered_set<std::string>> names;  // of the open objects
  int depth = 0;

  bool enter() {
    if (++depth > kDeepest) complaint = "the header is nested too deeply";
    return complaint.empty();
  }
  bool leave() {
    --depth;
    return true;
  }
  bool start_object(std::size_t) override {
    names.emplace_back();
    return enter();
  }
  bool end_object() override {
    names.pop_back();
    return leave();
  }
  bool start_array(std::size_t) override { return enter(); }
  bool end_array() override { return leave(); }
  bool key(string_t& name) override {
    if (!names.back().insert(name).second) {
      complaint = fmt::format("'{}' is named twice", printable(name));
    }
    return complaint.empty();
  }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;
  }
};

/// Turns header JSON into tensors and says where a header is wrong.
class HeaderReader {
 public:
  HeaderReader(std::string origin, std::span<const std::byte> data)
      : origin_(std::move(origin)), data_(data) {}

  nlohmann::json parse(std::string_view text) const {
    HeaderWatch watch;
    if (!nlohmann::json::sax_parse(text, &watch)) {
      fail(watch.complaint.empty() ? "the header is not valid JSON" : watch.complaint);
    }
    try {
      return nlohmann::json::parse(text);
    } catch (const nlohmann::json::exception&) {
      fail("the header is not valid JSON");
    }
  }

  TensorView tensor(const std::string& name, const nlohmann::json& entry) const {
    TensorView view;
    view.name = name;
    view.origin = origin_;
    if (!entry.is_object()) fail_at(name, "the entry is not an object");
    for (const auto& [key, value] : entry.items()) {
      if (key != "dtype" && key != "shape" && key != "data_offsets") {
        fail_at(name, fmt::format("unknown key '{}'", printable(key)));
      }
    }
    view.type = type(name, entry);
    view.shape = whole_numbers(name, entry, "shape");
    const std::vector<std::uint64_t> offsets = whole_numbers(name, entry, "data_offsets");
    if (offsets.size() != 2 || offsets[0] > offsets[1]) {
      fail_at(name, "data_offsets must be [begin, end] with begin <= end");
    }
    if (offsets[1] > data_.size()) {
      fail_at(name,
              fmt::format("data ends at byte {}, the file holds {}", offsets[1], data_.size()));
    }
    std::uint64_t wanted = 0;
    if (!size_in_bytes(view, wanted)) fail_at(name, "the shape is too large");
    if (wanted != offsets[1] - offsets[0]) {
      fail_at(name, fmt::format("shape and dtype take {} bytes, data_offsets give {}", wanted,
                                offsets[1] - offsets[0]));
    }
    view.bytes = data_.subspan(offsets[0], wanted);
    return view;
  }

  TensorMetadata metadata(const nlohmann::json& entry) const {
    TensorMetadata metadata;
    if (!entry.is_object()) fail("__metadata__ is not an object");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string())
        fail(fmt::format("__metadata__ '{}' is not a string", printable(key)));
      metadata[key] = value.get<std::string>();
    }
    return metadata;
  }

  /// Sorts by place and makes sure that the tensors tile the data exactly.
  void check_tiling(std::vector<TensorView>& tensors) const {
    const auto begin = [&](const TensorView& tensor) {
      return static_cast<std::uint64_t>(tensor.bytes.data() - data_.data());
    };
    std::ranges::sort(tensors, [&](const TensorView& a, const TensorView& b) {
      return std::tuple(begin(a), a.bytes.size(), a.name) <
             std::tuple(begin(b), b.bytes.size(), b.name);
    });
    std::uint64_t end = 0;
    for (const TensorView& tensor : tensors) {
      if (begin(tensor) < end) fail_at(tensor.name, "its data overlaps another tensor's");
      if (begin(tensor) > end) {
        fail_at(tensor.name,
                fmt::format("{} bytes before its data belong to no tensor", begin(tensor) - end));
      }
      end += tensor.bytes.size();
    }
    if (end != data_.size()) {
      fail(fmt::format("{} bytes at the end belong to no tensor", data_.size() - end));
    }
  }

  /// Checks the header and gives every tensor its own checksum, where the file has them.
  void check(std::string_view text, const TensorMetadata& metadata,
             std::vector<TensorView>& tensors) const {
    if (const auto found = metadata.find(kChecksum); found != metadata.end()) {
      require_checksum(text, found->second, origin_, "or make it again");
    }
    const auto found = metadata.find(kTensorChecksums);
    if (found == metadata.end()) return;
    const std::vector<std::string> digits = split(found->second, ' ');
    if (digits.size() != tensors.size() && !tensors.empty()) {
      fail(fmt::format("{} tensors, {} checksums", tensors.size(), digits.size()));
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].checksum = digits[i];
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(fmt::format("{}: {}", origin_, what));
  }
  [[noreturn]] void fail_at(const std::string& name, const std::string& what) const {
    fail(fmt::format("tensor '{}': {}", printable(name), what));
  }

 private:
  TensorType type(const std::string& name, const nlohmann::json& entry) const {
    const auto found = entry.find("dtype");
    if (found == entry.end() || !found->is_string()) fail_at(name, "dtype is missing or no text");
    const auto text = found->get<std::string>();
    for (const TypeEntry& known : kTypes) {
      if (text == known.name) return known.type;
    }
    fail_at(name, fmt::format("dtype '{}' is not known", printable(text)));
  }
  std::vector<std::uint64_t> whole_numbers(const std::string& name, const nlohmann::json& entry,
                                           const char* key) const {
    const auto found = entry.find(key);
    if (found == entry.end() || !found->is_array()) {
      fail_at(name, fmt::format("{} is missing or no list", key));
    }
    std::vector<std::uint64_t> numbers;
    for (const nlohmann::json& value : *found) {
      if (!value.is_number_unsigned()) {
        fail_at(name, fmt::format("{} must hold whole numbers from 0 up", key));
      }
      numbers.push_back(value.get<std::uint64_t>());
    }
    return numbers;
  }

  std::string origin_;
  std::span<const std::byte> data_;
};

}  // namespace

std::size_t bytes_of(TensorType type) {
  return kTypes[static_cast<std::size_t>(type)].bytes;
}
std::string to_string(TensorType type) {
  return kTypes[static_cast<std::size_t>(type)].name;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : file_(path) {
  const std::span<const std::byte> bytes = file_.bytes();
  const auto fail = [&](const std::string& what) {
    throw DataError(fmt::format("{}: {}", path.string(), what));
  };
  std::uint64_t header_bytes = 0;
  if (bytes.size() < sizeof header_bytes) fail("too short for a safetensors file");
  std::memcpy(&header_bytes, bytes.data(), sizeof header_bytes);
  if (header_bytes > kHeaderLimitBytes) {
    fail(fmt::format("a header of {} bytes is announced, the limit is {}; not a safetensors file?",
                     header_bytes, kHeaderLimitBytes));
  }
  if (header_bytes > bytes.size() - sizeof header_bytes) fail("the file ends inside its header");
  const HeaderReader reader(path.string(), bytes.subspan(sizeof header_bytes + header_bytes));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + sizeof header_bytes,
                              header_bytes);
  const nlohmann::json header = reader.parse(text);
  if (!header.is_object()) fail("the header is not a JSON object");
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      metadata_ = reader.metadata(entry);
    } else {
      tensors_.push_back(reader.tensor(name, entry));
    }
  }
  reader.check_tiling(tensors_);
  reader.check(text, metadata_, tensors_);
  for (std::size_t i = 0; i < tensors_.size(); ++i) by_name_[tensors_[i].name] = i;
}

const TensorView* SafetensorsFile::find(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

void TensorView::verify() const {
  if (!verification_is_on() || checksum.empty() || checksum_digits(bytes) == checksum) return;
  throw DataError(fmt::format("{}: tensor '{}' is damaged: its bytes do not match its checksum",
                              origin, printable(name)));
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     std::vector<TensorSpec> tensors,
                                     const TensorMetadata& metadata)
    : file_(path), tensors_(std::move(tensors)) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  header["__metadata__"] = metadata;
  std::string open;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    open += (i > 0 ? " " : "") + std::string(kOpenDigits);
  }
  header["__metadata__"][kTensorChecksums] = open;
  header["__metadata__"][kChecksum] = kOpenChecksum;
  // An ordered object is a list that its own lookups walk: thousands of layers took minutes.
  auto& entries = static_cast<nlohmann::ordered_json::object_t::Container&>(
      header.get_ref<nlohmann::ordered_json::object_t&>());
  std::unordered_set<std::string_view> names{"__metadata__"};
  std::uint64_t end = 0;
  for (const TensorSpec& tensor : tensors_) {
    const std::uint64_t begin = end;
    std::uint64_t bytes = 0;
    if (!names.insert(tensor.name).second || !size_in_bytes(tensor, bytes) ||
        __builtin_add_overflow(end, bytes, &end)) {
      throw InternalError(fmt::format("tensor '{}' is named twice or too large", tensor.name));
    }
    entries.emplace_back(tensor.name, nlohmann::ordered_json{{"dtype", to_string(tensor.type)},
                                                             {"shape", tensor.shape},
                                                             {"data_offsets", {begin, end}}});
  }
  header_ = header.dump();
  header_.append((kAlignment - (sizeof(std::uint64_t) + header_.size()) % kAlignment) % kAlignment,
                 ' ');
  const std::uint64_t header_bytes = header_.size();
  if (header_bytes > kHeaderLimitBytes) {
    throw DataError(
        fmt::format("{} tensors are more than one safetensors file can name; "
                    "the model has too many layers",
                    tensors_.size()));
  }
  file_.write(&header_bytes, sizeof header_bytes);
  file_.write(header_);
  if (!tensors_.empty()) size_in_bytes(tensors_[0], left_);
  skip_finished();
}

void SafetensorsWriter::skip_finished() {
  while (left_ == 0 && current_ < tensors_.size()) {
    checksums_ += (current_ > 0 ? " " : "") + fmt::format("{:016x}", hasher_.value().low);
    hasher_ = Hasher();
    if (++current_ < tensors_.size()) size_in_bytes(tensors_[current_], left_);
  }
}

void SafetensorsWriter::write(std::string_view name, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  if (current_ == tensors_.size() || tensors_[current_].name != name || bytes.size() > left_) {
    throw InternalError(fmt::format("tensor '{}' is out of turn or too long", name));
  }
  file_.write(bytes.data(), bytes.size());
  hasher_.add(bytes.data(), bytes.size());
  left_ -= bytes.size();
  skip_finished();
}

void SafetensorsWriter::commit() {
  if (current_ != tensors_.size()) {
    throw InternalError(fmt::format("tensor '{}' lacks bytes", tensors_[current_].name));
  }
  if (!tensors_.empty()) {
    const std::string key = fmt::format("\"{}\":\"", kTensorChecksums);
    header_.replace(header_.find(key) + key.size(), checksums_.size(), checksums_);
  }
  header_ = close_checksum(std::move(header_));
  file_.rewrite(sizeof(std::uint64_t), header_.data(), header_.size());
  file_.commit();
}

float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = half >> 10 & 0x1Fu;
  const std::uint32_t fraction = half & 0x3FFu;
  if (exponent == 0) {  // zero and subnormals: fraction * 2^-24 is exact in float
    const float magnitude = static_cast<float>(fraction) * 0x1.0p-24f;
    return sign == 0 ? magnitude : -magnitude;
  }
  const std::uint32_t biased = exponent == 31 ? 255 : exponent + (127 - 15);
  return std::bit_cast<float>(sign | biased << 23 | fraction << 13);
}

void copy_as_f32(const TensorView& tensor, std::span<float> out) {
  if (out.size() != tensor.elements()) {
    throw InternalError(fmt::format("tensor '{}' has {} elements, not {}", tensor.name,
                                    tensor.elements(), out.size()));
  }
  tensor.verify();
  const auto each = [&]<typename Stored>(Stored, auto convert) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      Stored value;
      std::memcpy(&value, tensor.bytes.data() + i * sizeof value, sizeof value);
      out[i] = convert(value);
    }
  };
  switch (tensor.type) {
    case TensorType::f32:
      if (!out.empty()) std::memcpy(out.data(), tensor.bytes.data(), tensor.bytes.size());
      break;
    case TensorType::f64:
      each(double{}, [](double value) { return static_cast<float>(value); });
      break;
    case TensorType::f16:
      each(std::uint16_t{}, half_to_float);
      break;
    case TensorType::bf16:
      each(std::uint16_t{}, [](std::uint16_t value) {
        return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
      });
      break;
    default:
      throw DataError(fmt::format("tensor '{}' is {}, numbers with a fraction were expected",
                                  printable(tensor.name), to_string(tensor.type)));
  }
}

}  // namespace fathom
