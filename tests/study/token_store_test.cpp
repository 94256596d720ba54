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

/// The same text in another study of the same folder.
Study begin_beside(const TinyStudy& tiny, const std::string& name,
                   const std::vector<std::string>& settings = {}) {
  fs::create_directories(tiny.folder / name);
  return begin_study(tiny.folder / name, tiny.spec(settings));
}

TEST(TokenStore, TakesTheTokensOfAStudyBesideIt) {
  const TinyStudy tiny;
  const fs::path first = tiny.begin().folder.tokens() / "train.tokens";
  const Study second = begin_beside(tiny, "second");
  EXPECT_TRUE(fs::equivalent(first, second.folder.tokens() / "train.tokens"));
  EXPECT_EQ(read_corpus_facts(second.folder).files, 1u);
  fs::remove_all(tiny.directory);  // each stands by itself
  EXPECT_EQ(begin_beside(tiny, "second").runs.size(), second.runs.size());
}

TEST(TokenStore, MakesItsOwnTokensWhereTheOthersDiffer) {
  const TinyStudy tiny;
  const fs::path first = tiny.begin().folder.tokens() / "train.tokens";
  const Study split = begin_beside(tiny, "split", {"corpus.test=0.1"});
  EXPECT_FALSE(fs::equivalent(first, split.folder.tokens() / "train.tokens"));
  tiny.folder.write("corpus.txt", tiny_corpus() + "= One more =\nA line.\n");
  const Study longer = begin_beside(tiny, "longer");
  EXPECT_FALSE(fs::equivalent(first, longer.folder.tokens() / "train.tokens"));
}

TEST(TokenStore, DoesNotTakeDamagedTokens) {
  const TinyStudy tiny;
  const fs::path first = tiny.begin().folder.tokens() / "train.tokens";
  std::string bytes = file_bytes(first);
  bytes[bytes.size() / 2] ^= 1;
  std::ofstream(first, std::ios::binary) << bytes;
  const Study second = begin_beside(tiny, "second");
  EXPECT_NO_THROW(data::TokenSet(second.folder.tokens()).verify());
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
            }).find("start a new study directory"),
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
