#include "pretrained/ggml_types.h"

#include <array>
#include <bit>
#include <cstring>
#include <string_view>

#include "core/error.h"
#include "core/safetensors.h"

namespace fathom::embedded {
extern const std::string_view iq2_xxs_txt;
}

namespace fathom::pretrained {
namespace {

using Bytes = const std::byte*;

unsigned at(Bytes b, std::size_t i) {
  return std::to_integer<unsigned>(b[i]);
}
unsigned low4(Bytes b, std::size_t i) {
  return at(b, i) & 15;
}
unsigned high4(Bytes b, std::size_t i) {
  return at(b, i) >> 4;
}
float half_at(Bytes b, std::size_t i) {
  return half_to_float(static_cast<std::uint16_t>(at(b, i) | at(b, i + 1) << 8));
}
std::uint32_t word_at(Bytes b, std::size_t i) {
  std::uint32_t word = 0;
  std::memcpy(&word, b + i, 4);
  return word;
}
float number(unsigned value) {
  return static_cast<float>(value);
}
float signed_byte(Bytes b, std::size_t i) {
  return static_cast<float>(std::to_integer<std::int8_t>(b[i]));
}

void f32(Bytes b, float* y) {
  *y = std::bit_cast<float>(word_at(b, 0));
}
void f16(Bytes b, float* y) {
  *y = half_at(b, 0);
}
void bf16(Bytes b, float* y) {
  *y = std::bit_cast<float>((at(b, 0) | at(b, 1) << 8) << 16);
}

// ---- blocks of 32: the first 16 weights in low nibbles, the others in high ones

void q4_0(Bytes b, float* y) {
  const float d = half_at(b, 0);
  for (std::size_t j = 0; j < 16; ++j) {
    y[j] = d * (number(low4(b, 2 + j)) - 8);
    y[j + 16] = d * (number(high4(b, 2 + j)) - 8);
  }
}
void q4_1(Bytes b, float* y) {
  const float d = half_at(b, 0), m = half_at(b, 2);
  for (std::size_t j = 0; j < 16; ++j) {
    y[j] = d * number(low4(b, 4 + j)) + m;
    y[j + 16] = d * number(high4(b, 4 + j)) + m;
  }
}
/// Fifth bits: bit j of the word belongs to weight j.
unsigned five(Bytes b, std::size_t fifth, std::size_t nibbles, std::size_t j) {
  const unsigned nibble = j < 16 ? low4(b, nibbles + j) : high4(b, nibbles + j - 16);
  return nibble | (word_at(b, fifth) >> j & 1) << 4;
}
void q5_0(Bytes b, float* y) {
  for (std::size_t j = 0; j < 32; ++j) y[j] = half_at(b, 0) * (number(five(b, 2, 6, j)) - 16);
}
void q5_1(Bytes b, float* y) {
  for (std::size_t j = 0; j < 32; ++j) {
    y[j] = half_at(b, 0) * number(five(b, 4, 8, j)) + half_at(b, 2);
  }
}
void q8_0(Bytes b, float* y) {
  for (std::size_t j = 0; j < 32; ++j) y[j] = half_at(b, 0) * signed_byte(b, 2 + j);
}

// ---- K formats: blocks of 256

void q2_k(Bytes b, float* y) {
  const float d = half_at(b, 80), low = half_at(b, 82);
  for (std::size_t i = 0; i < 256; ++i) {
    const std::size_t group = i / 16, shift = 2 * (i / 32 % 4);
    const unsigned q = at(b, 16 + 32 * (i / 128) + i % 32) >> shift & 3;
    y[i] = d * number(low4(b, group)) * number(q) - low * number(high4(b, group));
  }
}
void q3_k(Bytes b, float* y) {
  const float d = half_at(b, 108);
  for (std::size_t i = 0; i < 256; ++i) {
    const std::size_t group = i / 16;
    const unsigned low = group < 8 ? low4(b, 96 + group) : high4(b, 96 + group - 8);
    const unsigned high = at(b, 104 + group % 4) >> 2 * (group / 4) & 3;
    const float scale = number(low | high << 4) - 32;
    const unsigned q = at(b, 32 + 32 * (i / 128) + i % 32) >> 2 * (i / 32 % 4) & 3;
    const bool third = (at(b, i % 32) >> i / 32 & 1) != 0;
    y[i] = d * scale * (number(q) - (third ? 0.0f : 4.0f));
  }
}
/// Scales and minima of Q4_K and Q5_K: six bits each, twelve bytes for eight pairs.
struct SixBits {
  float scale, low;
};
SixBits six_bits(Bytes s, std::size_t group) {
  if (group < 4) return {number(at(s, group) & 63), number(at(s, group + 4) & 63)};
  return {number(low4(s, group + 4) | at(s, group - 4) >> 6 << 4),
          number(high4(s, group + 4) | at(s, group) >> 6 << 4)};
}
void q45_k(Bytes b, std::size_t nibbles, bool fifth, float* y) {
  const float d = half_at(b, 0), low = half_at(b, 2);
  for (std::size_t group = 0; group < 8; ++group) {
    const SixBits six = six_bits(b + 4, group);
    for (std::size_t j = 0; j < 32; ++j) {
      unsigned q = at(b, nibbles + 32 * (group / 2) + j) >> 4 * (group % 2) & 15;
      if (fifth) q += 16 * (at(b, 16 + j) >> group & 1);
      y[32 * group + j] = d * six.scale * number(q) - low * six.low;
    }
  }
}
void q4_k(Bytes b, float* y) {
  q45_k(b, 16, false, y);
}
void q5_k(Bytes b, float* y) {
  q45_k(b, 48, true, y);
}
void q6_k(Bytes b, float* y) {
  const float d = half_at(b, 208);
  for (std::size_t i = 0; i < 256; ++i) {
    const std::size_t part = i / 128, quarter = i / 32 % 4, j = i % 32;
    const unsigned byte = at(b, 64 * part + 32 * (quarter % 2) + j);
    const unsigned low = quarter < 2 ? byte & 15 : byte >> 4;
    const unsigned high = at(b, 128 + 32 * part + j) >> 2 * quarter & 3;
    y[i] = d * signed_byte(b, 192 + i / 16) * (number(low | high << 4) - 32);
  }
}

using Codebook = std::array<std::array<float, 8>, 256>;

const Codebook& iq2_codebook() {
  static const Codebook book = [] {
    Codebook words{};
    std::size_t count = 0;
    bool comment = false;
    for (const char c : embedded::iq2_xxs_txt) {
      comment = c == '#' || (comment && c != '\n');
      if (comment || c < 'a' || c > 'c' || count >= 2048) continue;
      words[count / 8][count % 8] = c == 'a' ? 8.0f : c == 'b' ? 25.0f : 43.0f;
      ++count;
    }
    if (count != 2048) throw InternalError("data/iq2_xxs.txt does not hold 256 codewords");
    return words;
  }();
  return book;
}

void iq2_xxs(Bytes b, float* y) {
  const Codebook& book = iq2_codebook();
  for (std::size_t group = 0; group < 8; ++group) {
    const Bytes q = b + 2 + 8 * group;
    const std::uint32_t bits = word_at(q, 4);
    const float scale = half_at(b, 0) * (0.5f + number(bits >> 28)) * 0.25f;
    for (std::size_t word = 0; word < 4; ++word) {
      unsigned signs = bits >> 7 * word & 127;
      signs |= static_cast<unsigned>(std::popcount(signs) & 1) << 7;  // their number is even
      const std::array<float, 8>& levels = book[at(q, word)];
      for (std::size_t j = 0; j < 8; ++j) {
        y[32 * group + 8 * word + j] = (signs >> j & 1 ? -scale : scale) * levels[j];
      }
    }
  }
}

constexpr std::array kTypes{
    GgmlType{0, "F32", 1, 4, f32},        GgmlType{1, "F16", 1, 2, f16},
    GgmlType{30, "BF16", 1, 2, bf16},     GgmlType{8, "Q8_0", 32, 34, q8_0},
    GgmlType{2, "Q4_0", 32, 18, q4_0},    GgmlType{3, "Q4_1", 32, 20, q4_1},
    GgmlType{6, "Q5_0", 32, 22, q5_0},    GgmlType{7, "Q5_1", 32, 24, q5_1},
    GgmlType{10, "Q2_K", 256, 84, q2_k},  GgmlType{11, "Q3_K", 256, 110, q3_k},
    GgmlType{12, "Q4_K", 256, 144, q4_k}, GgmlType{13, "Q5_K", 256, 176, q5_k},
    GgmlType{14, "Q6_K", 256, 210, q6_k}, GgmlType{16, "IQ2_XXS", 256, 66, iq2_xxs},
};

}  // namespace

const GgmlType* find_ggml_type(std::uint32_t id) {
  for (const GgmlType& type : kTypes) {
    if (type.id == id) return &type;
  }
  return nullptr;
}

std::string ggml_type_names() {
  std::string text;
  for (const GgmlType& type : kTypes) text += (text.empty() ? "" : ", ") + std::string(type.name);
  return text;
}

void decode_ggml(const GgmlType& type, std::span<const std::byte> bytes, std::span<float> out) {
  if (out.size() % type.weights != 0 || bytes.size() != out.size() / type.weights * type.bytes) {
    throw InternalError("a GGUF tensor is not whole blocks");
  }
  const std::size_t blocks = out.size() / type.weights;
  for (std::size_t i = 0; i < blocks; ++i) {
    type.decode(bytes.data() + i * type.bytes, out.data() + i * type.weights);
  }
}

}  // namespace fathom::pretrained
