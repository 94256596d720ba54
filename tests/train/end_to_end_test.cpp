// From text to a trained model: examples/small.toml on the default corpus reaches the held-out loss
// that the README states. Takes about a minute of one core.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/error.h"
#include "data/named_corpora.h"
#include "data/prepare.h"
#include "scratch_folder.h"
#include "train/run.h"

namespace fathom::train {
namespace {

namespace fs = std::filesystem;

// Bits per byte of held-out text, as in README.md.
constexpr double kStatedBitsPerByte = 1.768;

TEST(EndToEnd, SmallExampleReachesTheStatedLoss) {
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
  spec.threads = 1;     // other tests have the other core; two threads would wait for each other
  spec.eval_every = 0;  // only at the end: no other is looked at
  const data::TokenSet tokens(folder / "tokens");
  RunOptions options;
  options.directory = folder / "run";
  const RunRecord record = run_training(spec, tokens, options);
  EXPECT_EQ(record.status, RunStatus::finished);
  EXPECT_NEAR(record.final_bits_per_byte / kStatedBitsPerByte, 1, 0.02);
}

}  // namespace
}  // namespace fathom::train
