// The main() of every test program. Where all tests that were asked for are skipped (they need a
// GPU, or a corpus that is not installed), it ends with 77, which ctest shows as "Skipped".
#include <gtest/gtest.h>

int main(int count, char** arguments) {
  testing::InitGoogleTest(&count, arguments);
  const int result = RUN_ALL_TESTS();
  const testing::UnitTest& unit = *testing::UnitTest::GetInstance();
  const bool all_skipped = unit.skipped_test_count() > 0 && unit.successful_test_count() == 0;
  return result == 0 && all_skipped ? 77 : result;
}
