// GGUF files, versions 2 and 3, little-endian: keys with values, a table of tensors, their data.
//
//   "GGUF", version (u32), tensors (u64), keys (u64), then every key (text, type, value), every
//   tensor (name, dimensions innermost first, type, offset), padding to `general.alignment` (32)
//   and the data. Text is a length (u64) and bytes. Everything is checked against the file's size
//   before it is used; a DataError names the file and what is wrong.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/mapped_file.h"
#include "pretrained/ggml_types.h"
#include "pretrained/tensor_source.h"

namespace fathom::pretrained {

struct GgufTensor {
  TensorShape shape;  // outermost first, row-major
  const GgmlType* type = nullptr;
  std::span<const std::byte> bytes;
};

class GgufFile {
 public:
  explicit GgufFile(const std::filesystem::path& path);
  ~GgufFile();

  const std::string& origin() const { return origin_; }
  /// Numbers, booleans, texts and arrays of them.
  const nlohmann::json& keys() const { return *keys_; }
  const std::map<std::string, GgufTensor>& tensors() const { return tensors_; }

 private:
  std::string origin_;
  MappedFile file_;
  std::unique_ptr<nlohmann::json> keys_;
  std::map<std::string, GgufTensor> tensors_;
};

}  // namespace fathom::pretrained
