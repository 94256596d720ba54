// Reading and writing of safetensors files, whole or in shards.
//
// Layout: header length N (u64, little-endian), N bytes of JSON, tensor data to the end of the
// file. Per tensor the JSON gives dtype, shape and data_offsets [begin, end) within the data. A
// reader here accepts only files in which every byte of data belongs to exactly one tensor: no gap,
// no overlap, nothing left over, no duplicate name. Everything else is a DataError with one line.
//
// Files written here carry a checksum of the header and one of every tensor in their metadata
// (core/checksum.h): the first is checked on opening, the others as tensors are copied out. Files
// from elsewhere have none and are read as they are.
//
// Reading maps the file: a TensorView points into it, is valid as long as the file object, and may
// start at any byte (foreign files need not be aligned). Writing streams: memory is the header.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/atomic_file.h"
#include "core/hash.h"
#include "core/mapped_file.h"

namespace fathom {

enum class TensorType { f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8, boolean };

std::size_t bytes_of(TensorType type);
std::string to_string(TensorType type);  // "F32", as in the files

struct TensorSpec {
  std::string name;
  TensorType type = TensorType::f32;
  std::vector<std::uint64_t> shape;
};

struct TensorView : TensorSpec {
  std::span<const std::byte> bytes;
  std::string origin;    // the file
  std::string checksum;  // sixteen digits; empty when the file has none
  std::uint64_t elements() const { return bytes.size() / bytes_of(type); }
  /// DataError when the bytes do not match the checksum.
  void verify() const;
};

using TensorMetadata = std::map<std::string, std::string>;

class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);

  /// In the order of their data.
  const std::vector<TensorView>& tensors() const { return tensors_; }
  const TensorMetadata& metadata() const { return metadata_; }
  /// nullptr when there is none of that name.
  const TensorView* find(std::string_view name) const;

 private:
  MappedFile file_;
  std::vector<TensorView> tensors_;
  std::unordered_map<std::string, std::size_t> by_name_;
  TensorMetadata metadata_;
};

/// The one file of a model that is not in shards, by Hugging Face's convention.
inline constexpr const char* kModelTensors = "model.safetensors";

/// A model as Hugging Face lays it out: PATH itself, kModelTensors in PATH, or the shards that
/// PATH/model.safetensors.index.json names.
class SafetensorsModel {
 public:
  explicit SafetensorsModel(const std::filesystem::path& path);

  /// Sorted by name.
  const std::vector<const TensorView*>& tensors() const { return tensors_; }
  const TensorView* find(std::string_view name) const;
  /// DataError that names the model and the tensor when it is absent.
  const TensorView& at(std::string_view name) const;

 private:
  void open_shards(const std::filesystem::path& index);

  std::string origin_;
  std::map<std::string, SafetensorsFile> files_;
  std::vector<const TensorView*> tensors_;
};

/// Writes tensors in the order given at construction; the file appears whole at commit().
class SafetensorsWriter {
 public:
  /// InternalError on a name given twice or a shape whose size overflows.
  SafetensorsWriter(const std::filesystem::path& path, std::vector<TensorSpec> tensors,
                    const TensorMetadata& metadata = {});

  /// The next bytes of tensor `name`, which must be the one whose turn it is.
  void write(std::string_view name, std::span<const std::byte> bytes);
  /// InternalError when bytes are missing.
  void commit();

 private:
  AtomicFile file_;
  std::vector<TensorSpec> tensors_;
  std::string header_;  // its checksums still open
  Hasher hasher_;       // of the tensor being written
  std::string checksums_;
  std::size_t current_ = 0;
  std::uint64_t left_ = 0;  // bytes that tensor current_ still lacks
  void skip_finished();
};

/// Values as float, from F64, F32, F16 or BF16 (F64 is rounded). DataError on other types and on
/// damaged bytes, InternalError when `out` has another size.
void copy_as_f32(const TensorView& tensor, std::span<float> out);

/// IEEE binary16 to float, exactly.
float half_to_float(std::uint16_t half);

}  // namespace fathom
