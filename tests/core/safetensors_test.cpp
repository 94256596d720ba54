#include "core/safetensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "scratch_folder.h"

namespace fathom {
namespace {

std::span<const std::byte> bytes_of_text(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// A file with the given header text and data, lengths as they are.
std::string file_with(std::string_view header, std::string_view data) {
  const std::uint64_t size = header.size();
  std::string bytes(sizeof size, '\0');
  std::memcpy(bytes.data(), &size, sizeof size);
  return bytes.append(header).append(data);
}

TEST(Safetensors, WhatIsWrittenIsRead) {
  const ScratchFolder folder;
  const std::vector<float> weights{1.5f, -2.0f, 3.25f, 0.0f, 5.0f, 6.0f};
  SafetensorsWriter writer(folder / "m.safetensors",
                           {{"z.weight", TensorType::f32, {2, 3}},
                            {"empty", TensorType::i64, {0, 7}},
                            {"scalar", TensorType::u8, {}},
                            {"b\u00fc\"\n", TensorType::bf16, {2}}},
                           {{"format", "pt"}});
  const auto raw = std::as_bytes(std::span(weights));
  writer.write("z.weight", raw.first(5));
  writer.write("z.weight", raw.subspan(5));
  writer.write("empty", {});
  writer.write("scalar", bytes_of_text("\x07"));
  EXPECT_FALSE(std::filesystem::exists(folder / "m.safetensors"));
  writer.write("b\u00fc\"\n", bytes_of_text(std::string_view("\x80\x3f\x00\xc0", 4)));
  writer.commit();

  const SafetensorsFile file(folder / "m.safetensors");
  ASSERT_EQ(file.tensors().size(), 4u);
  EXPECT_EQ(file.metadata().at("format"), "pt");
  const TensorView* weight = file.find("z.weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->shape, (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(weight->bytes.data()) % 64, 0u);
  std::vector<float> read(6);
  copy_as_f32(*weight, read);
  EXPECT_EQ(read, weights);
  std::vector<float> pair(2);
  copy_as_f32(*file.find("b\u00fc\"\n"), pair);
  EXPECT_EQ(pair, (std::vector<float>{1.0f, -2.0f}));
  EXPECT_EQ(file.find("empty")->elements(), 0u);
  EXPECT_EQ(file.find("nothing"), nullptr);
  EXPECT_THROW(copy_as_f32(*file.find("scalar"), std::span(pair).first(1)), DataError);
  EXPECT_THROW(copy_as_f32(*weight, pair), InternalError);
}

TEST(Safetensors, AHandMadeFileIsRead) {
  const ScratchFolder folder;
  const std::string header = R"({"a":{"dtype":"I32","shape":[1],"data_offsets":[2,6]},)"
                             R"("b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}   )";
  const SafetensorsFile file(folder.write("x", file_with(header, "xy\x01\x02\x03\x04")));
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.tensors()[0].name, "b");  // in the order of the data
  EXPECT_EQ(static_cast<char>(file.find("a")->bytes[0]), '\x01');
  EXPECT_TRUE(SafetensorsFile(folder.write("y", file_with("{}", ""))).tensors().empty());
}

TEST(Safetensors, WritingIsStableAndRefusesMistakes) {
  const ScratchFolder folder;
  const auto write = [&](const char* name) {
    SafetensorsWriter writer(folder / name,
                             {{"b", TensorType::u8, {1}}, {"a", TensorType::u8, {1}}},
                             {{"k2", "v"}, {"k1", "v"}});
    writer.write("b", bytes_of_text("1"));
    writer.write("a", bytes_of_text("2"));
    writer.commit();
    return file_bytes(folder / name);
  };
  EXPECT_EQ(write("one"), write("two"));
  const std::vector<TensorSpec> pair{{"a", TensorType::u8, {1}}, {"b", TensorType::u8, {1}}};
  SafetensorsWriter writer(folder / "three", pair);
  EXPECT_THROW(writer.write("b", bytes_of_text("1")), InternalError);
  EXPECT_THROW(writer.write("a", bytes_of_text("12")), InternalError);
  writer.write("a", bytes_of_text("1"));
  EXPECT_THROW(writer.commit(), InternalError);
  EXPECT_THROW(SafetensorsWriter(folder / "four", {pair[0], pair[0]}), InternalError);
  EXPECT_THROW(SafetensorsWriter(folder / "five", {{"a", TensorType::f64, {1ull << 61}}}),
               InternalError);
  EXPECT_FALSE(std::filesystem::exists(folder / "three"));
}

struct Malformed {
  std::string bytes, says;
};

std::vector<Malformed> malformed_files() {
  const auto one = [](std::string_view entry, std::string_view data = "abcd") {
    return file_with(R"({"a":)" + std::string(entry) + "}", data);
  };
  const auto two = [](const char* first, const char* second) {
    return file_with(std::string(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)") + first +
                         R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)" + second + "}}",
                     "abcd");
  };
  const std::string good = R"({"dtype":"U8","shape":[4],"data_offsets":[0,4]})";
  std::string huge = file_with("{}", "");
  std::memset(huge.data(), 0xff, 8);
  std::string long_header = file_with("{}", "");
  long_header[0] = 3;
  return {
      {"", "too short"},
      {"1234567", "too short"},
      {huge, "18446744073709551615 bytes is announced"},
      {long_header, "ends inside its header"},
      {file_with("", ""), "not valid JSON"},
      {file_with("{", ""), "not valid JSON"},
      {file_with("{}{}", ""), "not valid JSON"},
      {file_with("{\"\xff\":1}", ""), "not valid JSON"},
      {file_with("[]", ""), "not a JSON object"},
      {file_with("7", ""), "not a JSON object"},
      {file_with(std::string(100000, '['), ""), "nested too deeply"},
      {one("1"), "the entry is not an object"},
      {one("{}"), "dtype is missing"},
      {one(R"({"dtype":7,"shape":[4],"data_offsets":[0,4]})"), "dtype is missing"},
      {one(R"({"dtype":"F33","shape":[4],"data_offsets":[0,4]})"), "dtype 'F33' is not known"},
      {one(R"({"dtype":"U8","data_offsets":[0,4]})"), "shape is missing"},
      {one(R"({"dtype":"U8","shape":4,"data_offsets":[0,4]})"), "shape is missing or no list"},
      {one(R"({"dtype":"U8","shape":[-4],"data_offsets":[0,4]})"), "whole numbers"},
      {one(R"({"dtype":"U8","shape":[4.0],"data_offsets":[0,4]})"), "whole numbers"},
      {one(R"({"dtype":"U8","shape":[99999999999999999999],"data_offsets":[0,4]})"), "whole num"},
      {one(R"({"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,4]})"), "too large"},
      {one(R"({"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]})"), "too large"},
      {one(R"({"dtype":"U8","shape":[4]})"), "data_offsets is missing"},
      {one(R"({"dtype":"U8","shape":[4],"data_offsets":[0]})"), "[begin, end]"},
      {one(R"({"dtype":"U8","shape":[4],"data_offsets":[0,4,4]})"), "[begin, end]"},
      {one(R"({"dtype":"U8","shape":[4],"data_offsets":[4,0]})"), "begin <= end"},
      {one(R"({"dtype":"U8","shape":[4],"data_offsets":[1,5]})"), "ends at byte 5"},
      {one(R"({"dtype":"U8","shape":[4],"data_offsets":[0,18446744073709551615]})"), "ends at"},
      {one(R"({"dtype":"F32","shape":[4],"data_offsets":[0,4]})"), "take 16 bytes"},
      {one(R"({"dtype":"U8","shape":[4],"data_offsets":[0,4],"x":1})"), "unknown key 'x'"},
      {one(R"({"dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4]})"), "named twice"},
      {one(good + R"(,"a":)" + good), "'a' is named twice"},
      {one(good, "abcde"), "1 bytes at the end"},
      {one(good, "abc"), "ends at byte 4"},
      {file_with("{}", "x"), "1 bytes at the end"},
      {two("[0,2]", "[1,3]"), "overlaps"},
      {two("[0,2]", "[0,2]"), "overlaps"},
      {two("[1,3]", "[2,4]"), "belong to no tensor"},
      {file_with(R"({"__metadata__":1})", ""), "__metadata__ is not an object"},
      {file_with(R"({"__metadata__":{"k":1}})", ""), "'k' is not a string"},
      {file_with("{\"a\\nb\":1}", ""), "tensor 'a?b'"},
  };
}

TEST(Safetensors, TooManyTensorsAreRefusedAndManyAreQuick) {
  const ScratchFolder folder;
  std::vector<TensorSpec> tensors;
  for (int i = 0; i < 20'000; ++i)
    tensors.push_back({"t" + std::to_string(i), TensorType::f32, {0}});
  // Looking every name up in a list took minutes.
  SafetensorsWriter(folder / "many", tensors, {}).commit();
  EXPECT_EQ(SafetensorsFile(folder / "many").tensors().size(), 20'000u);
  for (TensorSpec& tensor : tensors) tensor.name += std::string(900, 'x');
  EXPECT_THROW(SafetensorsWriter(folder / "more", tensors, {}), DataError);
}

TEST(Safetensors, MalformedFilesAreOneDataErrorEach) {
  const ScratchFolder folder;
  for (const Malformed& entry : malformed_files()) {
    const auto path = folder.write("bad.safetensors", entry.bytes);
    const std::string error = error_of<DataError>([&] { SafetensorsFile file(path); });
    EXPECT_NE(error.find(entry.says), std::string::npos) << entry.says << " / " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    EXPECT_LT(error.size(), 400u);
  }
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const ScratchFolder folder;
  SafetensorsWriter writer(folder / "m", {{"a", TensorType::f32, {2}}});
  writer.write("a", bytes_of_text("12345678"));
  writer.commit();
  const std::string good = file_bytes(folder / "m");
  for (std::size_t size = 0; size < good.size(); ++size) {
    const auto path = folder.write("cut", good.substr(0, size));
    EXPECT_THROW(SafetensorsFile file(path), DataError) << size;
  }
}

TEST(SafetensorsModel, OpensFilesFoldersAndShards) {
  const ScratchFolder folder;
  const std::string shard_a =
      file_with(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "A");
  const std::string shard_b =
      file_with(R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "B");
  folder.write("s/1.safetensors", shard_a);
  folder.write("s/2.safetensors", shard_b);
  folder.write("s/model.safetensors.index.json",
               R"({"metadata":{},"weight_map":{"b":"2.safetensors","a":"1.safetensors"}})");
  const SafetensorsModel sharded(folder / "s");
  ASSERT_EQ(sharded.tensors().size(), 2u);
  EXPECT_EQ(sharded.tensors()[0]->name, "a");
  EXPECT_EQ(static_cast<char>(sharded.at("b").bytes[0]), 'B');
  EXPECT_EQ(sharded.find("c"), nullptr);
  EXPECT_EQ(error_of<DataError>([&] { sharded.at("c"); }),
            (folder / "s").string() + ": no tensor 'c'");
  folder.write("w/model.safetensors", shard_a);
  EXPECT_EQ(SafetensorsModel(folder / "w").tensors().size(), 1u);
  EXPECT_EQ(SafetensorsModel(folder / "w/model.safetensors").tensors().size(), 1u);
  std::filesystem::create_directories(folder / "none");
  EXPECT_THROW(SafetensorsModel(folder / "none"), DataError);
  EXPECT_THROW(SafetensorsModel(folder / "missing"), DataError);
}

TEST(SafetensorsModel, MalformedIndexesAreOneDataErrorEach) {
  const ScratchFolder folder;
  folder.write("1.safetensors", file_with("{}", ""));
  for (const char* index :
       {"", "[]", "{}", R"({"weight_map":[]})", R"({"weight_map":{"a":1}})",
        R"({"weight_map":{"a":"missing.safetensors"}})", R"({"weight_map":{"a":"1.safetensors"}})",
        R"({"weight_map":{"a":"../1.safetensors"}})", R"({"weight_map":{"a":"/etc/passwd"}})",
        R"({"weight_map":{"a":".."}})", R"({"weight_map":{"a":""}})",
        R"({"weight_map":{"a":"1\u0000"}})"}) {
    folder.write("model.safetensors.index.json", index);
    const std::string error = error_of<DataError>([&] { SafetensorsModel model(folder.path()); });
    EXPECT_NE(error, "") << index;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
}

TEST(Safetensors, HalfPrecisionConvertsExactly) {
  EXPECT_EQ(half_to_float(0x3C00), 1.0f);
  EXPECT_EQ(half_to_float(0xC000), -2.0f);
  EXPECT_EQ(half_to_float(0x3555), 0.333251953125f);
  EXPECT_EQ(half_to_float(0x7BFF), 65504.0f);
  EXPECT_EQ(half_to_float(0x0400), 0x1.0p-14f);  // smallest normal
  EXPECT_EQ(half_to_float(0x0001), 0x1.0p-24f);  // smallest subnormal
  EXPECT_EQ(half_to_float(0x7C00), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(half_to_float(0x7E00)));
  EXPECT_TRUE(std::signbit(half_to_float(0x8000)));
}

}  // namespace
}  // namespace fathom
