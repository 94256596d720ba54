// From text to a trained model: examples/small.toml on the default corpus goes the way of the run
// whose end the README states. Its first quarter: a run that keeps to it reaches that end, too, and
// the whole would take over a minute of one core.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "core/error.h"
#include "data/named_corpora.h"
#include "data/prepare.h"
#include "scratch_folder.h"
#include "train/run.h"

namespace fathom::train {
namespace {

namespace fs = std::filesystem;

// Bits per byte of held-out text on the way of the run in README.md, which ends at 1.768 after 400
// steps.
const std::map<std::int64_t, double> kStatedBitsPerByte{{50, 2.4741}, {100, 2.1569}};

TEST(EndToEnd, SmallExampleGoesTheStatedWay) {
  fs::path corpus;
  try {
    corpus = data::resolve_corpus("sotu");
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  const ScratchFolder folder;
  data::PrepareRequest request;
  request.sources = {{corpus, {}, ""}};
  request.output = folder / "tokens";
  request.split = {0.05, 0.05, 0};
  request.tokenizer = {"bpe", 2000};
  request.threads = 2;
  data::prepare(request);

  RunSpec spec = read_run_spec(FATHOM_SOURCE_DIR "/examples/small.toml", {});
  spec.threads = 1;  // other tests have the other core; two threads would wait for each other
  const data::TokenSet tokens(folder / "tokens");
  std::map<std::int64_t, double> found;
  RunOptions options;
  options.directory = folder / "run";
  options.on_evaluation = [&](std::int64_t step, const Evaluation& evaluation) {
    found[step] = evaluation.bits_per_byte;
  };
  options.stop = [&] { return found.contains(kStatedBitsPerByte.rbegin()->first); };
  EXPECT_EQ(run_training(spec, tokens, options).status, RunStatus::interrupted);
  ASSERT_EQ(found.size(), kStatedBitsPerByte.size());
  for (const auto& [step, stated] : kStatedBitsPerByte) {
    EXPECT_NEAR(found[step] / stated, 1, 0.01) << "after " << step << " steps";
  }
}

}  // namespace
}  // namespace fathom::train
