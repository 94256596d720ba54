// Checksums in every format that carries one: any flipped bit and any cut is noticed or harmless.
#include "core/checksum.h"

#include <gtest/gtest.h>

#include "core/csv.h"
#include "core/error.h"
#include "core/json_file.h"
#include "core/json_text.h"
#include "core/safetensors.h"
#include "core/toml_file.h"
#include "core/toml_reader.h"
#include "scratch_folder.h"

namespace fathom {
namespace {

/// Calls `read` with every text that has one bit flipped, and with every beginning. It returns what
/// was read; an Error counts as noticed. What is read without one must equal the original.
template <class Read>
void expect_no_silent_damage(const std::string& text, const Read& read) {
  const std::string original = read(text);
  std::size_t silent = 0;
  std::string first;
  const auto look = [&](const std::string& damaged, const std::string& what) {
    try {
      if (read(damaged) == original) return;
    } catch (const Error&) {
      return;
    }
    if (silent++ == 0) first = what;
  };
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string damaged = text;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    look(damaged, "bit " + std::to_string(bit));
  }
  for (std::size_t size = 0; size < text.size(); ++size) {
    look(text.substr(0, size), "cut to " + std::to_string(size));
  }
  EXPECT_EQ(silent, 0u) << "first: " << first << " of\n" << text;
}

TEST(Checksum, IsThatOfTheTextWithZerosInItsPlace) {
  const std::string text = close_checksum("a " + std::string(kOpenChecksum) + " b");
  EXPECT_EQ(text.size(), 4 + kOpenChecksum.size());
  const std::string value = text.substr(2, kOpenChecksum.size());
  EXPECT_NE(value, kOpenChecksum);
  EXPECT_TRUE(checksum_holds(text, value));
  std::string other = text;
  other[0] = 'c';
  EXPECT_FALSE(checksum_holds(other, value));
  EXPECT_TRUE(checksum_holds(other, "somebody else's value"));
  EXPECT_THROW(close_checksum("no place for one"), InternalError);
}

TEST(Checksum, OfJsonFiles) {
  const std::string text = json_file_text({{"schema", "x"}, {"loss", 4.25}, {"name", "a\nb"}});
  EXPECT_EQ(parse_json(text, "r.json").at("loss").get<double>(), 4.25);
  expect_no_silent_damage(text, [](const std::string& damaged) {
    const nlohmann::json json = parse_json(damaged, "r.json");
    std::string values;  // as a reader asks for them
    for (const char* key : {"schema", "loss", "name"}) {
      values +=
          json.is_object() && json.contains(key) ? json[key].dump() : throw DataError("lacks");
    }
    return values;
  });
  std::string edited = text;
  edited.replace(edited.find("4.25"), 4, "4.26");
  EXPECT_EQ(error_of<DataError>([&] { parse_json(edited, "r.json"); }),
            "r.json: damaged: its content does not match its checksum; restore it, or take its key "
            "\"checksum\" out if it was edited by hand");
}

TEST(Checksum, OfLinesOfJson) {
  const std::string line = json_line({{"key", "a\nb"}, {"rank", 49}});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(parse_ordered_json(line, "r.jsonl:1").begin().key(), "key");  // in the line's order
  expect_no_silent_damage(line, [](const std::string& damaged) {
    const nlohmann::ordered_json json = parse_ordered_json(damaged, "r.jsonl:1");
    if (!json.contains("key") || !json.contains("rank")) throw DataError("lacks");
    return json["key"].dump() + json["rank"].dump();
  });
}

TEST(Checksum, OfTomlFiles) {
  const std::string text = toml_file_text("layers = 12\nrate = 0.25 # a comment\n");
  EXPECT_EQ(toml_file_text(text), text);  // not a second line
  EXPECT_EQ(without_checksum(text), "layers = 12\nrate = 0.25 # a comment\n");
  expect_no_silent_damage(text, [](const std::string& damaged) {
    TomlReader reader = TomlReader::from_text(damaged, "s.toml");
    const std::string values =
        std::to_string(reader.integer("layers")) + " " + std::to_string(reader.number("rate"));
    reader.finish();
    return values;
  });
}

TEST(Checksum, OfCsvTables) {
  const std::string text =
      close_checksum("id,loss," + std::string(kOpenChecksum) + "\na,4.25,\nb,3.5,\n");
  expect_no_silent_damage(text, [](const std::string& damaged) {
    const CsvTable table(damaged, "p.csv");
    std::string values;
    for (std::size_t row = 0; row < table.size(); ++row) {
      values += table.cell(row, "id") + " " + table.cell(row, "loss") + "\n";
    }
    if (table.size() == 0) throw DataError("no rows");
    return values;
  });
}

TEST(Checksum, OfSafetensors) {
  const ScratchFolder folder;
  const std::vector<float> weights{1.5f, -2.0f, 3.25f};
  const auto path = folder / "m.safetensors";
  SafetensorsWriter writer(
      path,
      {{"w", TensorType::f32, {3}}, {"none", TensorType::f32, {0}}, {"v", TensorType::f32, {}}},
      {{"steps", "12"}});
  writer.write("w", std::as_bytes(std::span(weights)));
  writer.write("v", std::as_bytes(std::span(weights).first(1)));
  writer.commit();
  expect_no_silent_damage(file_bytes(path), [&](const std::string& damaged) {
    folder.write("m.safetensors", damaged);
    const SafetensorsFile file(path);
    std::string values;
    for (const char* name : {"w", "v"}) {
      const TensorView* tensor = file.find(name);
      if (tensor == nullptr) throw DataError("lacks a tensor");
      std::vector<float> read(tensor->elements());
      copy_as_f32(*tensor, read);
      for (const float value : read) values += std::to_string(value) + " ";
    }
    return values + file.metadata().at("steps");
  });
}

TEST(Checksum, FilesWithoutOneAreReadAsTheyAre) {
  EXPECT_EQ(parse_json(R"({"checksum": "sha256:00ff", "a": 1})", "x").at("a").get<int>(), 1);
  EXPECT_EQ(CsvTable("a,b\n1,2\n", "x").cell(0, "b"), "2");
  EXPECT_EQ(TomlReader::from_text("# checksum by hand\na = 1\n", "x").integer("a"), 1);
}

}  // namespace
}  // namespace fathom
