#include "core/spec_keys.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "scratch_folder.h"

namespace fathom {
namespace {

enum class Mood : std::uint8_t { calm, wild };
constexpr auto enum_names(Mood) {
  return std::array{"calm", "wild"};
}

struct Spec {
  std::int64_t batch = 16;
  double rate = 0.5;
  bool fast = false;
  std::string title = "none";
  Mood mood = Mood::calm;
  std::uint64_t seed = 1;
  double later = 0;
  std::int64_t vocab = 2000;
  std::vector<double> sizes{1000};
  std::vector<std::uint64_t> seeds;

  template <class Self, class Visitor>
  static void visit_keys(Self& spec, Visitor& key) {
    key("batch", spec.batch, "sequences", {1, 64});
    key("rate", spec.rate, "speed", {0, 1});
    key("fast", spec.fast, "hurry");
    key("title", spec.title, "name");
    key("mood", spec.mood, "temper");
    key("seed", spec.seed, "chance", {.low = 0});
    key("later", spec.later, "a key of a later version", {.low = 0, .only_when_set = true});
    key("vocab", spec.vocab, "tokens", {.low = 1, .suffixed = true});
    key("sizes", spec.sizes, "parameters");
    key("seeds", spec.seeds, "of chance");
  }
};

Spec read(const std::string& text) {
  TomlReader table = TomlReader::from_text(text, "s.toml");
  Spec spec;
  read_keys(table, spec);
  table.finish();
  return spec;
}

std::string written(const Spec& spec) {
  return write_keys(spec);
}

TEST(SpecKeys, AreReadAndWrittenFromOneList) {
  const std::string text =
      "batch = 32\nrate = 1.0\nfast = true\ntitle = \"a \\\"b\\\" c\"\nmood = \"wild\"\nseed = 7\n"
      "vocab = 500\nsizes = [200000.0, 1200000.0]\nseeds = [0, 3]\n";
  const Spec spec = read(text);
  EXPECT_EQ(spec.batch, 32);
  EXPECT_EQ(spec.title, "a \"b\" c");
  EXPECT_EQ(spec.mood, Mood::wild);
  EXPECT_EQ(spec.seed, 7u);
  EXPECT_EQ(written(spec), text);
  EXPECT_EQ(read("").batch, 16);
}

TEST(SpecKeys, CountsMayHaveSuffixes) {
  const Spec spec = read("vocab = \"2K\"\nsizes = [\"1.2M\", 500]\nseeds = 4");
  EXPECT_EQ(spec.vocab, 2000);
  EXPECT_EQ(spec.sizes, (std::vector<double>{1.2e6, 500}));
  EXPECT_EQ(spec.seeds, (std::vector<std::uint64_t>{4}));
  EXPECT_EQ(read("").sizes, (std::vector<double>{1000}));
}

TEST(SpecKeys, AKeyOfALaterVersionIsWrittenWhereItIsSet) {
  EXPECT_EQ(written(Spec{}).find("later"), std::string::npos);
  EXPECT_NE(written(read("later = 0.25")).find("later = 0.25\n"), std::string::npos);
}

TEST(SpecKeys, MistakesAreNamedWithTheirPlace) {
  const auto refused = [](const std::string& text) {
    return error_of<ConfigError>([&] { read(text); });
  };
  EXPECT_EQ(refused("rate = 0.1\nbatch = 65"), "s.toml:2:9: batch = 65 must lie between 1 and 64");
  EXPECT_EQ(refused("rate = nan"), "s.toml:1:8: rate = nan must lie between 0 and 1");
  EXPECT_EQ(refused("later = -0.5"), "s.toml:1:9: later = -0.5 must be at least 0");
  EXPECT_EQ(refused("mood = \"wildd\""),
            "s.toml:1:8: mood 'wildd' is not one of calm, wild. Did you mean 'wild'?");
  EXPECT_EQ(refused("sizes = [1000,\n -1]"), "s.toml:1:9: sizes '-1' must be greater than zero");
  EXPECT_EQ(refused("\nseeds = [1.5]"),
            "s.toml:2:9: seeds '1.5' must be a whole number below 9e18");
  EXPECT_EQ(refused("vocab = \"2x\""),
            "s.toml:1:9: vocab '2x': unknown suffix 'x'; use K, M, B, T, P or E");
  EXPECT_NE(refused("btch = 3").find("Did you mean 'batch'?"), std::string::npos);
}

TEST(SpecKeys, ASpecThatNoFileGaveIsCheckedToo) {
  Spec spec;
  spec.rate = 2;
  KeyChecker checker("spec");
  EXPECT_EQ(error_of<ConfigError>([&] { Spec::visit_keys(spec, checker); }),
            "spec: rate = 2.0 must lie between 0 and 1");
}

TEST(SpecKeys, HelpHasDefaultsValuesAndMeanings) {
  const auto keys = describe_keys("spec", Spec{}).keys;
  ASSERT_EQ(keys.size(), 10u);
  EXPECT_EQ(keys[0].values, "whole, 1 to 64");
  EXPECT_EQ(keys[1].fallback, "0.5");
  EXPECT_EQ(keys[4].values, "calm, wild");
  EXPECT_EQ(keys[4].fallback, "\"calm\"");
  EXPECT_EQ(keys[5].values, "whole, from 0");
  EXPECT_EQ(keys[3].meaning, "name");
}

}  // namespace
}  // namespace fathom
