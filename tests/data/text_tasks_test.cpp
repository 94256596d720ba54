// Tasks on marked sequences and on real text, against slow definitions of their labels.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "core/error.h"
#include "data/tasks/speech_library.h"
#include "data/tasks/task.h"
#include "data/tasks/task_scores.h"
#include "scratch_folder.h"

namespace fathom::data {
namespace {

struct Drawn {
  std::vector<TokenId> inputs, targets;
  std::int64_t group = 0;
};

Drawn draw(const Task& task, std::uint64_t index, ExampleUse use) {
  Drawn example;
  example.inputs.resize(static_cast<std::size_t>(task.context()));
  example.targets.resize(example.inputs.size());
  example.group = task.example(1, use, index, example.inputs, example.targets);
  return example;
}

std::int64_t count_of(const std::vector<TokenId>& letters, TokenId letter) {
  return std::count(letters.begin(), letters.end(), letter);
}

TEST(CaseTask, PointsByTheMarkersOfThePaper) {
  const auto task = make_task({.kind = TaskKind::cases}, 33);
  EXPECT_EQ(task->vocabulary(), 101);
  std::map<std::int64_t, int> cases;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    Drawn e = draw(*task, i, ExampleUse::held_out);
    EXPECT_EQ(e.inputs.back(), 100);
    EXPECT_EQ(count_of(e.targets, kNoTarget), 32);
    e.inputs.pop_back();
    std::size_t least = 0, greatest = 0;
    for (std::size_t t = 1; t < e.inputs.size(); ++t) {
      if (e.inputs[t] < e.inputs[least]) least = t;
      if (e.inputs[t] > e.inputs[greatest]) greatest = t;
    }
    std::size_t answer = greatest;
    if (count_of(e.inputs, 50) > 0) answer = 0;
    if (count_of(e.inputs, 64) > 0) answer = least;
    EXPECT_EQ(e.targets.back(), static_cast<TokenId>(answer));
    ++cases[e.group];
  }
  for (const auto& [group, count] : cases) EXPECT_NEAR(count, 1000, 90) << group;
  int high = 0;  // in training the marker comes as often as chance has it: 1 - 0.99^32 = 27.5 %
  for (std::uint64_t i = 0; i < 3000; ++i) high += draw(*task, i, ExampleUse::training).group == 0;
  EXPECT_NEAR(high, 825, 75);
}

TEST(LocalGlobalTask, PointsAtEveryPositionItselfOrAtTheLeast) {
  const auto task = make_task({.kind = TaskKind::local_global, .symbols = 20}, 40);
  EXPECT_EQ(task->vocabulary(), 40);  // positions are answers
  int local = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const Drawn e = draw(*task, i, ExampleUse::held_out);
    const bool marked = count_of(e.inputs, 12) > 0;  // 20 * 64 / 100
    const auto least = std::min_element(e.inputs.begin(), e.inputs.end()) - e.inputs.begin();
    for (std::size_t t = 0; t < e.targets.size(); ++t) {
      EXPECT_EQ(e.targets[t], static_cast<TokenId>(marked ? t : static_cast<std::size_t>(least)));
    }
    EXPECT_EQ(e.group, marked ? 0 : 1);
    local += marked;
  }
  EXPECT_NEAR(local, 500, 60);
}

TEST(InverseTask, SaysWhereEveryLetterStands) {
  const auto task = make_task({.kind = TaskKind::inverse}, 16);
  std::set<TokenId> firsts;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const Drawn e = draw(*task, i, ExampleUse::training);
    firsts.insert(e.inputs[0]);
    for (std::size_t letter = 0; letter < 16; ++letter) {
      EXPECT_EQ(e.inputs[static_cast<std::size_t>(e.targets[letter])],
                static_cast<TokenId>(letter));
    }
  }
  EXPECT_EQ(firsts.size(), 16u);
  EXPECT_THROW(make_task({.kind = TaskKind::inverse, .symbols = 3}, 16), ConfigError);
}

TEST(Speeches, AreReadFromTheNamesOfTheirFiles) {
  const ScratchFolder folder;
  const auto write = [&](const std::string& name) { std::ofstream(folder / name) << name; };
  for (const char* name : {"1801_ann_lee_x.txt", "1802_ann_lee_x.txt", "1803_bo_x.txt"})
    write(name);
  const SpeechLibrary library = read_speeches(folder.path().string());
  ASSERT_EQ(library.speeches.size(), 3u);
  EXPECT_EQ(library.speeches[1].year, 1802);
  EXPECT_EQ(library.speeches[1].speaker, "ann_lee");
  EXPECT_TRUE(library.speeches[1].held_out);  // a speaker's second
  EXPECT_FALSE(library.speeches[2].held_out);
  write("notes.txt");
  EXPECT_THROW(read_speeches(folder.path().string()), DataError);
}

TEST(Speeches, AnEraWithoutALabelIsRefused) {
  SpeechLibrary library;
  for (const int year : {1800, 1860, 1910, 1960}) {
    for (const bool held_out : {false, true}) library.speeches.push_back({year, "x", "", held_out});
  }
  require_every_era(library);
  library.speeches[3].year = 1920;  // was the one of 1860 to hold out
  try {
    require_every_era(library);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("none from 1850 to hold out"), std::string::npos);
  }
}

/// The speech that holds the passage, found by searching all of them.
const Speech& speech_with(const SpeechLibrary& library, const std::vector<TokenId>& tokens,
                          std::size_t begin, std::size_t count) {
  std::string passage;
  for (std::size_t i = begin; i < begin + count; ++i) passage += static_cast<char>(tokens[i]);
  for (const Speech& speech : library.speeches) {
    if (speech.text.find(passage) != std::string::npos) return speech;
  }
  throw DataError("no speech has the passage");
}

class SpeechTasks : public testing::Test {
 protected:
  void SetUp() override {
    try {
      library_ = default_speeches();
    } catch (const DataError&) {
      GTEST_SKIP() << "the default corpus is not installed";
    }
  }
  std::shared_ptr<const SpeechLibrary> library_;
};

TEST_F(SpeechTasks, AnEraIsThatOfTheYear) {
  const auto task = make_task({.kind = TaskKind::era}, 1001);
  for (const ExampleUse use : {ExampleUse::training, ExampleUse::held_out}) {
    for (std::uint64_t i = 0; i < 40; ++i) {
      const Drawn e = draw(*task, i, use);
      const Speech& speech = speech_with(*library_, e.inputs, 0, 1000);
      const int era = (speech.year >= 1850) + (speech.year >= 1900) + (speech.year >= 1950);
      EXPECT_EQ(e.targets.back(), era);
      EXPECT_EQ(speech.held_out, use == ExampleUse::held_out);
      EXPECT_EQ(count_of(e.targets, kNoTarget), 1000);
    }
  }
  EXPECT_EQ(task->spec().text, library_->hash.hex());
  EXPECT_THROW(make_task({.kind = TaskKind::era, .text = "0123"}, 1001), ConfigError);
}

TEST_F(SpeechTasks, PairsAreOfOneSpeakerOrOfTwoOfTheTime) {
  const auto task = make_task({.kind = TaskKind::same_speaker}, 402);
  int same = 0;
  for (std::uint64_t i = 0; i < 60; ++i) {
    const Drawn e = draw(*task, i, ExampleUse::held_out);
    EXPECT_EQ(e.inputs[200], 257);
    EXPECT_EQ(e.inputs.back(), 256);
    const Speech& a = speech_with(*library_, e.inputs, 0, 200);
    const Speech& b = speech_with(*library_, e.inputs, 201, 200);
    EXPECT_NE(&a, &b);
    EXPECT_TRUE(a.held_out && b.held_out);
    EXPECT_LE(std::abs(a.year - b.year), 8);
    EXPECT_EQ(e.targets.back(), a.speaker == b.speaker ? 1 : 0);
    same += e.targets.back();
  }
  EXPECT_NEAR(same, 30, 15);
}

}  // namespace
}  // namespace fathom::data
