#include "attack/specimen.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "attack/child.h"
#include "data/sample_text.h"
#include "data/token_set.h"
#include "fits/run_points_csv.h"
#include "train/run.h"

namespace fathom::attack {
namespace {

namespace fs = std::filesystem;

void must(const std::vector<std::string>& arguments, int code = 0) {
  const ChildResult result = run_in_child(arguments, 300);
  if (result.signal == 0 && !result.hung && result.code == code) return;
  throw std::runtime_error(
      fmt::format("fathom {}: exit {}: {}", fmt::join(arguments, " "), result.code, result.err));
}

/// Four depths at five sizes with a planted law: enough for every part of a fit.
std::vector<fits::RunPoint> planted_points() {
  std::vector<fits::RunPoint> points;
  for (const int layers : {2, 4, 8, 12}) {
    for (int place = 0; place < 5; ++place) {
      const double width = std::round(std::sqrt(1e5 * std::pow(6.0, place) / (12 * layers)));
      const double params = 12 * layers * width * width;
      const double depth_gain = 0.05 * std::log(layers) * std::log(params / 2e5);
      const double loss = 1.7 + 90 * std::pow(params, -0.34) - 0.02 * depth_gain +
                          0.0005 * std::sin(12.9898 * static_cast<double>(points.size()));
      points.push_back({fmt::format("run{}", points.size()), layers,
                        static_cast<std::int64_t>(width), params, 2e7, loss, 1});
    }
  }
  return points;
}

/// The run as it is on disk after seven steps of twelve; trained in a child, which may use threads.
void stop_half_way(const fs::path& spec_file, const fs::path& folder) {
  const pid_t child = fork();
  if (child == 0) {
    try {
      const train::RunSpec spec = train::read_run_spec(spec_file, {});
      const data::TokenSet tokens(spec.tokens);
      train::RunOptions options;
      options.directory = folder;
      int steps = 0;
      options.stop = [&] { return ++steps == 7; };
      run_training(spec, tokens, options);
    } catch (...) {
      _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) throw std::runtime_error("the run half-way failed");
}

std::string run_spec(const fs::path& tokens) {
  return fmt::format(
      "[data]\ntokens = \"{}\"\neval_tokens = 256\n"
      "[model]\nlayers = 2\nwidth = 16\nheads = 1\ncontext = 16\n"
      "[train]\nsteps = 12\nbatch = 2\nlearning_rate = 0.003\neval_every = 4\n"
      "checkpoint_every = 3\n",
      tokens.string());
}

}  // namespace

Specimen::Specimen() {
  std::string corpus;
  for (int i = 0; i < 40; ++i) corpus += data::sample_text(150, 70 + i) + "\n\n";
  folder_.write("corpus.txt", corpus);
  const std::vector<std::string> split{"--documents", "paragraphs", "--valid",
                                       "0.2",         "--test",     "0.1"};
  const auto prepare = [&](const std::string& output, std::vector<std::string> tokenizer) {
    std::vector<std::string> command{"data", "prepare", text("corpus.txt"), "-o", text(output)};
    command.insert(command.end(), split.begin(), split.end());
    command.insert(command.end(), tokenizer.begin(), tokenizer.end());
    must(command);
  };
  prepare("tokens", {"--tokenizer", "bytes"});
  prepare("pieces", {"--tokenizer", "bpe", "--vocab", "330"});
  folder_.write("run.toml", run_spec(path("tokens")));
  must({"train", text("run.toml"), "--out", text("done")});
  stop_half_way(path("run.toml"), path("run"));
  folder_.write("study.toml",
                fmt::format("title = \"Specimen\"\n[corpus]\npath = \"{}\"\n"
                            "documents = \"paragraphs\"\ntokenizer = \"bytes\"\nvalid = 0.2\n"
                            "test = 0.1\neval_tokens = 256\n[grid]\nkind = \"list\"\n"
                            "shapes = [\"1x16\", \"2x16\"]\nhead_size = 16\n[budget]\n"
                            "tokens = 320\n[model]\ncontext = 16\n[train]\nbatch = 2\n"
                            "eval_every = 4\ncheckpoint_every = 4\n",
                            text("corpus.txt")));
  must({"study", "run", text("study.toml"), text("study"), "--jobs", "1"});
  must({"export", text("done"), "--format", "hf-gpt2", "-o", text("hf")});
  must({"import", text("hf"), "-o", text("model")});
  folder_.write("points.csv", fits::run_points_csv(planted_points()));
  must({"study", "fit", text("points.csv"), "--save", text("law.json"), "--starts", "4",
        "--replicates", "10"});
  folder_.write("gpu.toml",
                "title = \"A GPU\"\npeak_tflops = 300\nbandwidth_gbs = 2000\nmemory_gb = 80\n"
                "multiprocessors = 108\ntrain_layer_fixed_us = 20\ndecode_layer_fixed_us = 10\n");
}

fs::path Specimen::study_run() const {
  std::vector<fs::path> runs;
  for (const auto& entry : fs::directory_iterator(path("study/runs"))) runs.push_back(entry.path());
  std::sort(runs.begin(), runs.end());
  return runs.at(0);
}

}  // namespace fathom::attack
