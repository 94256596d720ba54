// The cost of verifying checksums, in one run on one machine:
//
//   build/release/verification_cost [MEGABYTES of text, default 64]
//
// Times are the least of several tries, next to what they are a part of: the hash of the ids next
// to opening a corpus and starting to train on it, a line of metrics next to a step, the hashes of
// a checkpoint next to loading it.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>

#include "core/counts.h"
#include "core/hash.h"
#include "core/safetensors.h"
#include "data/prepare.h"
#include "data/sample_text.h"
#include "data/token_set.h"
#include "scratch_folder.h"
#include "train/metrics_file.h"
#include "train/run_spec.h"
#include "train/trainer.h"

namespace fathom {
namespace {

double least_seconds(int tries, const std::function<void()>& body) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < tries; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    least = std::min(least, time.count());
  }
  return least;
}

void print(const char* what, double seconds, const char* beside, double whole) {
  fmt::print("{:<34} {:>10.3f} ms   {:>6.2f} % of {} ({:.3f} ms)\n", what, 1e3 * seconds,
             100 * seconds / whole, beside, 1e3 * whole);
}

std::filesystem::path prepare_tokens(const ScratchFolder& folder, std::size_t megabytes) {
  std::string text;
  for (int i = 0; text.size() < (megabytes << 20); ++i) {
    text += "= Article " + std::to_string(i) + " =\n" + data::sample_text(4000, i) + "\n\n";
  }
  data::PrepareRequest request;
  request.sources = {{folder.write("corpus.txt", text), {}, ""}};
  request.output = folder / "tokens";
  request.tokenizer = {"bytes", 257};
  prepare(request);
  return request.output;
}

/// The part of the ids hashed before the first step: the block hashes, and the blocks that the
/// evaluation reads. The others are hashed as steps reach them. Returns the seconds of one block.
double measure_opening(const std::filesystem::path& path, const train::RunSpec& spec,
                       double hashing) {
  std::uint64_t checked = 0, all = 0;
  const double beginning = least_seconds(5, [&] {
    const data::TokenSet again(path);
    const train::Trainer trainer(spec, again);
    checked = all = 0;
    for (const data::Split split : data::kSplits) {
      const data::TokenFile& file = again.file(split);
      checked += file.checked_bytes();
      all += file.size() * file.info().bytes_per_id;
    }
  });
  const data::TokenSet tokens(path);
  const data::TokenFile& file = tokens.file(data::Split::train);
  const double opening = least_seconds(5, [&] { const data::TokenSet again(path); });
  const std::string table(file.size() * file.info().bytes_per_id / (64 << 10) * 8, 'x');
  const double blocks = least_seconds(5, [&] {
    if (hash_bytes(table) == Hash128{}) fmt::print("the hash is zero\n");
  });
  fmt::print("ids checked before the first step: {:.2f} of {:.1f} MB\n", 1e-6 * checked,
             1e-6 * all);
  print("hashing the block hashes", blocks, "opening the corpus", opening);
  print("hashing blocks before step 1", hashing * as_double(checked) / as_double(all) + blocks,
        "opening and building the model", beginning);
  print("hashing all ids (old corpora)", hashing, "opening and building the model", beginning);
  return hashing / as_double(all) * (64 << 10);
}

void measure(std::size_t megabytes) {
  const ScratchFolder folder;
  const auto path = prepare_tokens(folder, megabytes);
  const data::TokenSet tokens(path);
  const std::string text = "[data]\ntokens = \"" + path.string() +
                           "\"\n[model]\nlayers = 4\nwidth = 128\nheads = 4\ncontext = 256\n"
                           "[train]\nbatch = 8\n";
  const train::RunSpec spec = resolve(train::read_run_spec_text(text, "bench.toml"), tokens);

  const double hashing = least_seconds(5, [&] {
    tokens.file(data::Split::train).verify();
    tokens.file(data::Split::valid).verify();
  });
  fmt::print("tokens: {:.1f} MB, {:.1f} GB/s\n", 2e-6 * tokens.file(data::Split::train).size(),
             2e-9 * tokens.file(data::Split::train).size() / hashing);
  const double block = measure_opening(path, spec, hashing);

  train::Trainer trainer(spec, tokens);
  train::MetricsWriter metrics(folder / "metrics.jsonl");
  metrics.open(0);
  const double step = least_seconds(5, [&] { trainer.step(); });
  const double line = least_seconds(5, [&] { metrics.add(1, train::StepResult{4.1, 0.5, 0.001}); });
  print("a line of metrics, written", line, "a training step", step);
  // A window lies in one block, seldom in two; in the first epoch each may be a new one.
  print("new blocks of a step, at most", 2 * as_double(spec.batch) * block, "a training step",
        step);

  const auto state = folder / "state.safetensors";
  const double saving = least_seconds(3, [&] { trainer.save(state, {}); });
  const double loading = least_seconds(3, [&] { trainer.load(state); });
  const SafetensorsFile file(state);
  const double checking = least_seconds(5, [&] {
    for (const TensorView& tensor : file.tensors()) tensor.verify();
  });
  print("hashing a checkpoint, once", checking, "saving it", saving);
  print("hashing a checkpoint, twice", 2 * checking, "loading it", loading);
}

}  // namespace
}  // namespace fathom

int main(int argc, char** argv) {
  fathom::measure(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 64);
}
