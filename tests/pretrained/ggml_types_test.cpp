// Blocks of every number format against values worked out by hand from the format's definition.
#include "pretrained/ggml_types.h"

#include <gtest/gtest.h>

#include <vector>

namespace fathom::pretrained {
namespace {

constexpr std::uint16_t kOne = 0x3C00, kHalf = 0x3800, kTwo = 0x4000;  // as f16

struct PackedBlock {
  std::vector<std::byte> bytes;
  explicit PackedBlock(std::size_t size) : bytes(size) {}
  void half(std::size_t at, std::uint16_t value) {
    bytes[at] = static_cast<std::byte>(value & 255);
    bytes[at + 1] = static_cast<std::byte>(value >> 8);
  }
  void set(std::size_t at, unsigned value) { bytes[at] = static_cast<std::byte>(value); }
};

std::vector<float> decode(std::uint32_t id, const PackedBlock& block) {
  const GgmlType* type = find_ggml_type(id);
  EXPECT_NE(type, nullptr);
  EXPECT_EQ(type->bytes, block.bytes.size()) << type->name;
  std::vector<float> out(type->weights);
  decode_ggml(*type, block.bytes, out);
  return out;
}

TEST(GgmlTypes, PlainBlocksScaleNibblesAndBytes) {
  PackedBlock q4(18);
  q4.half(0, kHalf);
  q4.set(2, 0xF3);  // weight 0: 3, weight 16: 15
  EXPECT_FLOAT_EQ(decode(2, q4)[0], 0.5f * (3 - 8));
  EXPECT_FLOAT_EQ(decode(2, q4)[16], 0.5f * (15 - 8));
  EXPECT_FLOAT_EQ(decode(2, q4)[1], 0.5f * -8);

  PackedBlock q41(20);
  q41.half(0, kHalf);
  q41.half(2, kTwo);
  q41.set(4, 0xF3);
  EXPECT_FLOAT_EQ(decode(3, q41)[0], 3.5f);
  EXPECT_FLOAT_EQ(decode(3, q41)[16], 9.5f);

  PackedBlock q5(22);
  q5.half(0, kOne);
  q5.set(2, 0x01);  // fifth bit of weight 0
  q5.set(4, 0x01);  // of weight 16
  q5.set(6, 0xF3);
  EXPECT_FLOAT_EQ(decode(6, q5)[0], 19 - 16);
  EXPECT_FLOAT_EQ(decode(6, q5)[16], 31 - 16);
  EXPECT_FLOAT_EQ(decode(6, q5)[31], -16);

  PackedBlock q51(24);
  q51.half(0, kOne);
  q51.half(2, kHalf);
  q51.set(7, 0x80);  // fifth bit of weight 31
  q51.set(23, 0x20);
  EXPECT_FLOAT_EQ(decode(7, q51)[31], 18.5f);

  PackedBlock q8(34);
  q8.half(0, kHalf);
  q8.set(33, 0xFE);
  EXPECT_FLOAT_EQ(decode(8, q8)[31], -1);

  PackedBlock bf16(2);
  bf16.half(0, 0xC040);
  EXPECT_FLOAT_EQ(decode(30, bf16)[0], -3);
}

TEST(GgmlTypes, KBlocksHaveScalesPerGroup) {
  PackedBlock q2(84);
  q2.half(80, kOne);
  q2.half(82, kHalf);
  q2.set(9, 0x35);             // group 9: scale 5, minimum 3
  q2.set(16 + 32 + 16, 0x02);  // second half, second sixteen, lowest two bits: weight 144
  EXPECT_FLOAT_EQ(decode(10, q2)[144], 5 * 2 - 0.5f * 3);
  EXPECT_FLOAT_EQ(decode(10, q2)[145], -1.5f);
  EXPECT_FLOAT_EQ(decode(10, q2)[0], 0);

  PackedBlock q3(110);
  q3.half(108, kOne);
  q3.set(96 + 1, 0x70);   // low nibble of scale 1 is 0, of scale 9 it is 7
  q3.set(104 + 1, 0x20);  // high bits of scale 9 (shift 4): 2, so 7 + 32 - 32 = 7
  q3.set(32 + 32 + 16, 0x03);
  q3.set(16, 0x10);  // third bit of weight 128 + 16
  EXPECT_FLOAT_EQ(decode(11, q3)[144], 7 * 3);
  EXPECT_FLOAT_EQ(decode(11, q3)[145], 7 * -4);

  PackedBlock q4(144);
  q4.half(0, kOne);
  q4.half(2, kOne);
  q4.set(4 + 1, 0x80 | 6);    // scale 1 is 6; its top bits are those of scale 5: 2 << 4
  q4.set(4 + 9, 0x5C);        // low nibble: scale 5 is 12 + 32; high: minimum 5 is 5
  q4.set(16 + 2 * 32, 0xA0);  // group 5 is the high nibbles of the third 32 bytes
  EXPECT_FLOAT_EQ(decode(12, q4)[160], 44 * 10 - 5);
  PackedBlock q5(176);
  q5.half(0, kOne);
  q5.set(4, 3);
  q5.set(16, 0x01);
  q5.set(48, 0x04);
  EXPECT_FLOAT_EQ(decode(13, q5)[0], 3 * 20);

  PackedBlock q6(210);
  q6.half(208, kOne);
  q6.set(192 + 8 + 6, 0xFE);  // scale of group 14 is -2
  q6.set(64 + 32, 0x50);      // second half, fourth quarter: high nibble of byte 32
  q6.set(128 + 32, 0x80);     // top bits of quarter 3: 2
  EXPECT_FLOAT_EQ(decode(14, q6)[224], -2 * (5 + 32 - 32));
  EXPECT_FLOAT_EQ(decode(14, q6)[225], -2 * -32);
}

TEST(GgmlTypes, CodewordsHaveAnEvenNumberOfMinusSigns) {
  PackedBlock iq(66);
  iq.half(0, kOne);
  iq.set(2 + 8 + 1, 1);     // second group, second codeword: "caaaaaaa" = 43 8 8 8 ...
  iq.set(2 + 8 + 4, 0x80);  // its seven signs begin at bit 7: the first weight is negative
  iq.set(2 + 8 + 7, 0x30);  // scale 3
  const std::vector<float> y = decode(16, iq);
  const float scale = 3.5f * 0.25f;
  EXPECT_FLOAT_EQ(y[40], -scale * 43);
  EXPECT_FLOAT_EQ(y[41], scale * 8);
  EXPECT_FLOAT_EQ(y[47], -scale * 8);  // the eighth makes their number even
  EXPECT_FLOAT_EQ(y[0], 0.5f * 0.25f * 8);
}

TEST(GgmlTypes, UnknownFormatsAreNotFound) {
  EXPECT_EQ(find_ggml_type(4), nullptr);
  EXPECT_NE(ggml_type_names().find("IQ2_XXS"), std::string::npos);
}

}  // namespace
}  // namespace fathom::pretrained
