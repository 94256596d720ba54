#include "study/token_store.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "tiny_study.h"

namespace fathom::study {
namespace {

namespace fs = std::filesystem;

std::string data_error(const TinyStudy& tiny, const std::vector<std::string>& settings = {}) {
  return error_of<DataError>([&] { tiny.begin(settings); });
}

TEST(TokenStore, PreparesOnceAndRemembersTheText) {
  const TinyStudy tiny;
  const Study study = tiny.begin();
  EXPECT_TRUE(study.has_tokens);
  const auto written = fs::last_write_time(study.folder.tokens() / "train.tokens");
  const CorpusFacts facts = read_corpus_facts(study.folder);
  EXPECT_EQ(facts.bytes, fs::file_size(tiny.corpus));
  EXPECT_EQ(facts.files, 1u);
  tiny.begin();
  EXPECT_EQ(fs::last_write_time(study.folder.tokens() / "train.tokens"), written);
}

TEST(TokenStore, RefusesAChangedCorpusAndTakesATouchedOne) {
  const TinyStudy tiny;
  tiny.begin();
  fs::last_write_time(tiny.corpus, fs::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_EQ(data_error(tiny), "");  // another time, the same text
  std::string text = file_bytes(tiny.corpus);
  text[100] = text[100] == 'x' ? 'y' : 'x';
  tiny.folder.write("corpus.txt", text);
  EXPECT_NE(data_error(tiny).find("the corpus has changed"), std::string::npos);
  fs::remove(tiny.corpus);
  EXPECT_EQ(data_error(tiny), "");  // the tokens are there; the text is not needed
}

TEST(TokenStore, RefusesACountThatIsNone) {
  const TinyStudy tiny;
  const Study study = tiny.begin();
  std::string text = file_bytes(study.folder.corpus());
  const std::size_t begin = text.find("\"changed\": ") + 11, end = text.find(',', begin);
  text.replace(begin, end - begin, "1e308");
  const std::size_t checksum = text.rfind("\"checksum\"");  // none: as edited by hand
  ASSERT_NE(checksum, std::string::npos);
  text.resize(text.rfind(',', checksum));
  std::ofstream(study.folder.corpus()) << text << "\n}\n";
  EXPECT_NE(data_error(tiny).find("does not describe a corpus"), std::string::npos)
      << data_error(tiny);
}

TEST(TokenStore, RefusesAnotherTokenizerOnOldTokens) {
  const TinyStudy tiny;
  tiny.begin();
  EXPECT_NE(error_of<ConfigError>([&] {
              tiny.begin({"corpus.tokenizer=chars"});
            }).find("begin a new study directory"),
            std::string::npos);
}

TEST(TokenStore, MissingAndEmptyCorporaLeaveNoTokens) {
  const TinyStudy tiny;
  fs::remove(tiny.corpus);
  EXPECT_NE(data_error(tiny).find("no such file"), std::string::npos) << data_error(tiny);
  tiny.folder.write("corpus.txt", "");
  EXPECT_NE(data_error(tiny).find("empty"), std::string::npos) << data_error(tiny);
  EXPECT_FALSE(fs::exists(tiny.directory / "tokens"));
  tiny.folder.write("corpus.txt", "one document only");
  EXPECT_NE(data_error(tiny), "");
  tiny.folder.write("corpus.txt", tiny_corpus());
  EXPECT_EQ(data_error(tiny), "");
}

TEST(TokenStore, AKillDuringPreparationIsMended) {
  const TinyStudy tiny;
  fs::create_directories(tiny.directory);
  tiny.folder.write("study/tokens.tmp/train.tokens", "half");
  tiny.folder.write("study/tokens/valid.tokens", "half");
  EXPECT_TRUE(tiny.begin().has_tokens);
}

}  // namespace
}  // namespace fathom::study
