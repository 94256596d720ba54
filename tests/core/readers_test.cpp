// CSV, TOML and JSON readers: what they accept, and one clear line for what they do not.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/csv.h"
#include "core/error.h"
#include "core/file_lock.h"
#include "core/files.h"
#include "core/json_file.h"
#include "core/json_reader.h"
#include "core/json_text.h"
#include "core/spec_keys.h"
#include "core/toml_reader.h"
#include "scratch_folder.h"

namespace fathom {
namespace {

template <class Exception, class Function>
std::string message_of(Function&& function) {
  try {
    function();
  } catch (const Exception& error) {
    return error.what();
  }
  return "no exception";
}

TEST(Csv, ReadsQuotesAndNumbers) {
  const CsvTable table("name,value\n\"a, \"\"b\"\"\",2.5\nc,\n", "t.csv");
  ASSERT_EQ(table.size(), 2u);
  EXPECT_EQ(table.cell(0, "name"), "a, \"b\"");
  EXPECT_DOUBLE_EQ(table.number(0, "value"), 2.5);
  EXPECT_DOUBLE_EQ(table.number(1, "value", -1), -1);
}

TEST(Csv, NamesFileAndLineOfBadRows) {
  EXPECT_EQ(message_of<DataError>([] { CsvTable("a,b\n1\n", "t.csv"); }),
            "t.csv:2: 1 cells, the header has 2");
  EXPECT_EQ(message_of<DataError>([] { CsvTable("a\n\"x\n", "t.csv"); }),
            "t.csv:2: a quote is not closed");
  EXPECT_EQ(message_of<DataError>([] { CsvTable("a\nx\n", "t.csv").number(0, "a"); }),
            "t.csv: row 2, column 'a': 'x' is not a number");
}

TEST(Toml, ReadsTypedValuesAndTables) {
  auto file = TomlReader::from_text("n = 3\nx = 2\ns = \"t\"\n[sub]\nb = true\n", "t.toml");
  EXPECT_EQ(file.integer("n"), 3);
  EXPECT_DOUBLE_EQ(file.number("x"), 2.0);
  EXPECT_EQ(file.text("s"), "t");
  EXPECT_DOUBLE_EQ(file.number("absent", 7), 7);
  auto sub = file.table("sub");
  EXPECT_TRUE(sub.boolean("b"));
  EXPECT_NO_THROW(sub.finish());
  EXPECT_NO_THROW(file.finish());
}

TEST(Toml, UnknownKeyIsAnErrorWithPlaceAndSuggestion) {
  auto file = TomlReader::from_text("layers = 3\nwidht = 64\n", "spec.toml");
  file.integer("layers");
  file.integer("width", 0);
  const std::string message = message_of<ConfigError>([&] { file.finish(); });
  EXPECT_EQ(message,
            "spec.toml:2:9: widht is not a known key. Did you mean 'width'? Known here: layers, "
            "width");
}

TEST(Toml, WrongTypeMissingKeyAndSyntaxNameThePlace) {
  auto file = TomlReader::from_text("n = \"three\"\n[sub]\nx = 1\n", "t.toml");
  EXPECT_EQ(message_of<ConfigError>([&] { file.integer("n"); }),
            "t.toml:1:5: n must be a whole number");
  auto sub = file.table("sub");
  EXPECT_EQ(message_of<ConfigError>([&] { sub.text("name"); }),
            "t.toml:2:1: sub.name is missing; it must be a quoted string");
  const std::string syntax =
      message_of<ConfigError>([] { TomlReader::from_text("n = = 3\n", "bad.toml"); });
  EXPECT_EQ(syntax.substr(0, 11), "bad.toml:1:");
  EXPECT_THROW(TomlReader::from_file("/nonexistent/x.toml"), DataError);
}

TEST(Json, NamesLineAndColumn) {
  EXPECT_EQ(message_of<DataError>([] { parse_json("{\n  \"a\": ,\n}", "c.json"); }),
            "c.json:2:8: not valid JSON");
}

TEST(Files, APipeIsReadToItsEndAndNotWaitedForWithoutAWriter) {
  const ScratchFolder folder;
  const auto pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(message_of<DataError>([&] { read_text_file(pipe); }),
            pipe.string() + ": a pipe that nobody writes to");
  EXPECT_FALSE(FileLock::holder(pipe));
  std::thread writer([&] {
    std::ofstream stream(pipe);
    stream << "first " << std::flush;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // a slow writer
    stream << "second";
  });
  EXPECT_EQ(read_text_file(pipe), "first second");
  writer.join();
}

TEST(Files, AtomicWriteReplacesAndLeavesNoTemporary) {
  const ScratchFolder scratch;
  const auto& folder = scratch.path();
  write_file_atomically(folder / "f", "one");
  write_file_atomically(folder / "f", "two");
  EXPECT_EQ(read_text_file(folder / "f"), "two");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  EXPECT_THROW(write_file_atomically(folder / "none" / "f", "x"), DataError);
  EXPECT_THROW(read_text_file(folder), DataError);
  EXPECT_THROW(read_text_file(folder / "f", 2), DataError);
}

TEST(TomlReader, ErrorsAreOneLineWhateverTheTextHolds) {
  for (const char* text : {"a = \xc5\n", "\"a\\nb\" = 1\n", "a = [, 2]\n[b\n"}) {
    try {
      TomlReader::from_text(text, "x.toml").finish();
      FAIL() << text;
    } catch (const ConfigError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
}

TEST(Toml, ListsTakeNumbersTextsAndSingleValues) {
  TomlReader file = TomlReader::from_text("a = [1, \"2M\", 0.5]\nb = 7\nc = [true]\n", "t.toml");
  EXPECT_EQ(file.list("a"), (std::vector<std::string>{"1", "2M", "0.5"}));
  EXPECT_EQ(file.list("b"), (std::vector<std::string>{"7"}));
  EXPECT_TRUE(file.list("absent").empty());
  EXPECT_EQ(message_of<ConfigError>([&] { file.list("c"); }),
            "t.toml:3:5: c must be a list of numbers or texts");
}

TEST(Toml, DumpsWhatItReadsBack) {
  const TomlReader file =
      TomlReader::from_text("a = 1.5\n[t]\nx = \"a \\\"b\\\"\"\n", "t.toml", {"t.y=[1, 2]"});
  TomlReader again = TomlReader::from_text(file.dump(), "again.toml");
  EXPECT_EQ(again.number("a"), 1.5);
  TomlReader table = again.table("t");
  EXPECT_EQ(table.text("x"), "a \"b\"");
  EXPECT_EQ(table.list("y"), (std::vector<std::string>{"1", "2"}));
}

TEST(Json, NumbersBeyondADoubleAreAnErrorOfTheFile) {
  EXPECT_NE(
      message_of<DataError>([] { parse_json(R"({"loss": 1e309})", "r.json"); }).find("r.json: "),
      std::string::npos);
}

TEST(Json, ValuesOfAnotherTypeAreAnErrorOfTheFile) {
  const nlohmann::json json = parse_json(R"({"steps": "many"})", "r.json");
  EXPECT_EQ(message_of<DataError>(
                [&] { with_json_errors("r.json", [&] { return json.at("steps").get<int>(); }); }),
            "r.json: type must be number, but is string");
}

TEST(Json, WhatIsWrongIsSaidInPlainWords) {
  const nlohmann::json json = parse_json(R"({"list": [1], "text": "a"})", "r.json");
  const auto problem_of = [](const auto& read) {
    return message_of<DataError>([&] { with_json_errors("r.json", read); });
  };
  EXPECT_EQ(problem_of([&] { json.at("none").get<int>(); }), "r.json: the key \"none\" is missing");
  EXPECT_EQ(problem_of([&] { json["list"].at(3).get<int>(); }),
            "r.json: a list is too short: it has no item [3]");
  EXPECT_EQ(problem_of([&] { json["text"].at("x").get<int>(); }),
            "r.json: there is a string where something else was expected");
  EXPECT_EQ(problem_of([&] { parse_json("[1e400]", "r.json"); }),
            "r.json: the number 1e400 is too large");
}

TEST(Json, AWholeNumberIsWholeAndFits) {
  const auto whole = [](const char* text) {
    return json_whole<std::int64_t>(nlohmann::json::parse(text));
  };
  EXPECT_EQ(whole("320"), 320);
  EXPECT_EQ(whole("-7"), -7);
  EXPECT_EQ(whole("320.0"), 320);
  EXPECT_EQ(whole("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(json_whole<std::uint64_t>(nlohmann::json::parse("18446744073709551615")), UINT64_MAX);
  for (const char* text :
       {"1e308", "-1e308", "1e19", "0.5", "18446744073709551615", "\"3\"", "null", "true", "[1]"}) {
    EXPECT_THROW(whole(text), nlohmann::json::type_error) << text;
  }
  for (const char* text : {"-1", "256", "1e3", "2.5"}) {
    EXPECT_THROW(json_whole<std::uint8_t>(nlohmann::json::parse(text)), nlohmann::json::type_error)
        << text;
  }
  EXPECT_EQ(message_of<DataError>([&] { with_json_errors("r.json", [&] { whole("1e308"); }); }),
            "r.json: type must be a whole number within bounds, but is 1e+308");
}

TEST(JsonReader, NamesFileLineAndKey) {
  const std::string text =
      "{\n \"a\": 1,\n \"b\": {\"c\": [\n  1, 2,\n  3\n ],\n \"d\": null, \"e\": true,\n"
      " \"n\": -2,\n \"s\": \"x\\ny\"\n}\n}\n";
  const nlohmann::json json = parse_json(text, "r.json");
  const JsonReader reader(json, text, "r.json");
  const JsonReader b = reader.at("b");
  EXPECT_EQ(reader.at("a").count(), 1u);
  EXPECT_EQ(b.at("c").items().at(2).number(), 3);
  EXPECT_EQ(b.at("s").text(), "x\ny");
  EXPECT_TRUE(b.at("e").boolean());
  EXPECT_FALSE(b.find("d"));
  EXPECT_FALSE(b.find("none"));
  const auto problem_of = [](const auto& read) { return message_of<DataError>(read); };
  EXPECT_EQ(problem_of([&] { reader.at("a").text(); }),
            "r.json:2: a must be a string, but is a number");
  EXPECT_EQ(problem_of([&] { b.at("c").at(2).boolean(); }),
            "r.json:5: b.c[2] must be true or false, but is a number");
  EXPECT_EQ(problem_of([&] { b.at("c").at(3); }), "r.json:3: b.c has only 3 of its items");
  EXPECT_EQ(problem_of([&] { b.at("d").number(); }), "r.json:7: b.d must be a number, but is null");
  EXPECT_EQ(problem_of([&] { b.at("n").count(); }),
            "r.json:8: b.n must be a whole number from 0 on");
  EXPECT_EQ(problem_of([&] { b.at("s").items(); }),
            "r.json:9: b.s must be a list, but is a string");
  EXPECT_EQ(problem_of([&] { b.at("x"); }), "r.json:3: b has no \"x\"");
  EXPECT_EQ(problem_of([&] { reader.at("x"); }), "r.json: has no \"x\"");
  EXPECT_EQ(json_line_of(text, "b.e"), 7u);
  EXPECT_EQ(json_line_of(text, "b.z"), 0u);
  // A line of a file of lines: its origin says the line already.
  EXPECT_EQ(problem_of([&] { JsonReader(json, "", "r.jsonl:12").at("a").text(); }),
            "r.jsonl:12: a must be a string, but is a number");
}

TEST(Toml, AKeyOfThousandsOfPartsIsRefused) {
  std::string key = "a";
  for (int i = 0; i < 40'000; ++i) key += ".a";
  for (const std::string& text :
       {key + " = 1\n", "[" + key + "]\n", "x = {" + key + " = 1}\n", "y = 1\n[[" + key + "]]\n"}) {
    EXPECT_NE(message_of<ConfigError>([&] {
                TomlReader::from_text(text, "s.toml");
              }).find("a key of more than 1000 parts"),
              std::string::npos);
  }
  EXPECT_THROW(TomlReader::from_text("", "s.toml", {key + "=1"}), ConfigError);
  EXPECT_THROW(TomlReader::from_text("", "s.toml", {"a={" + key + " = 1}"}), ConfigError);
  std::string numbers = "sizes = [";
  for (int i = 0; i < 5'000; ++i) numbers += "0.5, ";
  EXPECT_EQ(TomlReader::from_text(numbers + "1.5]\n", "s.toml").list("sizes").size(), 5001u);
}

TEST(Toml, TextsOfAnyBytesReadBack) {
  const std::string odd = "a\nb\x1b[31m\t\"\\\x7f";
  TomlReader reader = TomlReader::from_text("path = " + toml_text(odd) + "\n", "s.toml");
  EXPECT_EQ(reader.text("path"), odd);
}

}  // namespace
}  // namespace fathom
