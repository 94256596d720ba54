// The checks themselves, on planted rules and includes.
#include "architecture/rules.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace fathom::architecture {
namespace {

using Path = std::vector<std::string>;

TEST(FindCycle, SeesNoneInALadder) {
  EXPECT_EQ(find_cycle({{"core", {}}, {"shape", {"core"}}, {"laws", {"core", "shape"}}}), Path{});
  EXPECT_EQ(find_cycle({{"a", {"missing"}}}), Path{});
}

TEST(FindCycle, ReportsThePath) {
  EXPECT_EQ(find_cycle({{"a", {"b"}}, {"b", {"c"}}, {"c", {"a"}}}), (Path{"a", "b", "c", "a"}));
  EXPECT_EQ(find_cycle({{"a", {"a"}}}), (Path{"a", "a"}));
}

// A search that only looks for its start would run for ever here.
TEST(FindCycle, ReportsACycleThatExcludesItsStart) {
  EXPECT_EQ(find_cycle({{"a", {"b"}}, {"b", {"c"}}, {"c", {"d"}}, {"d", {"b"}}}),
            (Path{"b", "c", "d", "b"}));
}

TEST(Matches, StarsStayWithinAFolderName) {
  EXPECT_TRUE(matches("engine/plan/op.h", "engine/plan/*"));
  EXPECT_FALSE(matches("engine/ops/norm/norm.h", "engine/ops/*"));
  EXPECT_TRUE(matches("engine/ops/norm/norm_cuda.cu", "engine/ops/*/*_cuda.*"));
  EXPECT_FALSE(matches("engine/ops/norm/norm_cpu.cpp", "engine/ops/*/*_cuda.*"));
  EXPECT_TRUE(matches("engine/device.h", "engine/*"));
}

TEST(QuotedIncludes, AreThoseInQuotes) {
  EXPECT_EQ(quoted_includes("#include <vector>\n  #include \"core/error.h\"\n// #include \"x.h\"\n"
                            "#include \"engine/plan/op.h\"  // why\n"),
            (Path{"core/error.h", "engine/plan/op.h"}));
}

const Rules kPlanted = Rules::parse(
    "core:\n"
    "engine: core\n"
    "train: core engine\n"
    "cli: core engine train\n"
    "part engine/plan/*: engine engine/ops\n"
    "part engine/ops/*/*_cuda.*: engine/plan engine/cuda\n"
    "part engine/ops/*/*: engine/plan\n"
    "part engine/cuda/*: engine engine/plan engine/ops\n"
    "part engine/*: engine/plan\n"
    "users bench: core engine\n"
    "users tests/engine: train\n");

TEST(CheckRoomInclude, FindsWhatARoomMayNotUse) {
  EXPECT_EQ(check_room_include(kPlanted, "train/run.cpp", "engine/executor.h"), "");
  EXPECT_EQ(check_room_include(kPlanted, "train/run.cpp", "train/run.h"), "");
  EXPECT_EQ(check_room_include(kPlanted, "engine/executor.h", "train/run.h"),
            "engine/executor.h includes train/run.h, but engine may use core");
  EXPECT_EQ(check_room_include(kPlanted, "attic/old.cpp", "core/error.h"),
            "attic/old.cpp: src/attic is not a room");
}

TEST(CheckPartInclude, KeepsBackendsApart) {
  EXPECT_EQ(check_part_include(kPlanted, "engine/plan/op.h", "engine/ops/norm/norm.h"), "");
  EXPECT_EQ(check_part_include(kPlanted, "engine/plan/op.h", "core/error.h"), "");
  EXPECT_EQ(check_part_include(kPlanted, "engine/plan/op.h", "engine/cuda/module.h"),
            "engine/plan/op.h includes engine/cuda/module.h, but engine/plan/* may use engine, "
            "engine/ops");
  EXPECT_EQ(check_part_include(kPlanted, "engine/ops/norm/norm_cuda.cu", "engine/cuda/check.h"),
            "");
  EXPECT_NE(check_part_include(kPlanted, "engine/ops/norm/norm.h", "engine/cuda/check.h"), "");
  EXPECT_NE(check_part_include(kPlanted, "engine/ops/norm/norm.h", "engine/ops/linear/linear.h"),
            "");
  EXPECT_EQ(check_part_include(kPlanted, "engine/ops/norm/norm_ref.cpp", "engine/ops/norm/norm.h"),
            "");
  // The room itself stands for the files in its own folder.
  EXPECT_EQ(check_part_include(kPlanted, "engine/plan/op.h", "engine/require.h"), "");
  EXPECT_EQ(check_part_include(kPlanted, "engine/attic/x.h", "engine/require.h"),
            "engine/attic/x.h: no part of engine has a rule for this file");
  EXPECT_EQ(check_part_include(kPlanted, "train/run.cpp", "train/run.h"), "");  // no parts there
}

TEST(CheckUserInclude, GivesATestItsRoomAndWhatThatUses) {
  EXPECT_EQ(check_user_include(kPlanted, "tests/train/run_test.cpp", "engine/executor.h"), "");
  EXPECT_EQ(check_user_include(kPlanted, "tests/train/run_test.cpp", "train/run.h"), "");
  EXPECT_EQ(check_user_include(kPlanted, "tests/train/run_test.cpp", "scratch_folder.h"), "");
  EXPECT_EQ(check_user_include(kPlanted, "tests/engine/x_test.cpp", "train/run.h"), "");  // listed
  EXPECT_EQ(check_user_include(kPlanted, "tests/core/x_test.cpp", "engine/executor.h"),
            "tests/core/x_test.cpp includes engine/executor.h, but tests/core may use core");
  EXPECT_EQ(check_user_include(kPlanted, "bench/speed.cu", "engine/executor.h"), "");
  EXPECT_NE(check_user_include(kPlanted, "bench/speed.cu", "cli/command_line.h"), "");
  EXPECT_NE(check_user_include(kPlanted, "tools/x.cpp", "core/error.h"), "");
}

TEST(Rules, RefuseWhatTheyDoNotKnow) {
  EXPECT_THROW(Rules::parse("core\n"), std::runtime_error);
  EXPECT_THROW(Rules::parse("rooms core: shape\n"), std::runtime_error);
}

}  // namespace
}  // namespace fathom::architecture
