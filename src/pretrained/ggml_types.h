// The number formats of GGUF files, decoded to f32.
//
// A format packs weights in blocks of 1, 32 or 256. Plain formats have a scale d (f16) per block of
// 32, perhaps an offset m; the K formats a super-scale per 256 and small scales and minima per
// group of 16 or 32; IQ2_XXS takes groups of eight weights from a codebook of 256 with 7 + 1 sign
// bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace fathom::pretrained {

struct GgmlType {
  std::uint32_t id;
  const char* name;
  std::size_t weights;  // in a block
  std::size_t bytes;    // of a block
  void (*decode)(const std::byte* block, float* out);
};

/// nullptr for formats that Fathom cannot read.
const GgmlType* find_ggml_type(std::uint32_t id);
/// "F32, F16, ...", for messages.
std::string ggml_type_names();

/// `bytes` holds whole blocks; out.size() is a multiple of the block's weights.
void decode_ggml(const GgmlType& type, std::span<const std::byte> bytes, std::span<float> out);

}  // namespace fathom::pretrained
