#include "attack/specimen.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "attack/child.h"
#include "attack/foreign.h"
#include "data/sample_text.h"
#include "data/token_set.h"
#include "fits/run_points_csv.h"
#include "study/run_state.h"
#include "study/subprocess.h"
#include "train/run.h"
#include "train/weights.h"

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

std::string study_spec(const fs::path& corpus, const std::string& shapes) {
  return fmt::format(
      "title = \"Specimen\"\n[corpus]\npath = \"{}\"\ndocuments = \"paragraphs\"\n"
      "tokenizer = \"bytes\"\nvalid = 0.2\ntest = 0.1\neval_tokens = 256\n{}"
      "[budget]\ntokens = 320\n[model]\ncontext = 16\n"
      "[train]\nbatch = 2\neval_every = 4\ncheckpoint_every = 4\n",
      corpus.string(), shapes);
}

constexpr const char* kTask =
    "[data]\ntask = \"k-hop\"\nsymbols = 4\nhops = [0, 1, 2]\neval_tokens = 170\nexamples = 50\n"
    "[model]\nlayers = 2\nwidth = 16\nheads = 2\ncontext = 17\nlayer_heads = [2, 1]\n"
    "layer_ffn = [24, 8]\n"
    "[train]\nsteps = 6\nbatch = 2\neval_every = 3\nprox = \"l21\"\nprox_rows = 2.0\n"
    "prox_heads = 8.0\nkeep_best = true\npatience = 2\n";
constexpr const char* kAutomaton =
    "alphabet = \"ab\"\nstart = \"even\"\naccept = [\"even\"]\n[transitions]\n"
    "even = { a = \"odd\", b = \"even\" }\nodd = { a = \"even\", b = \"odd\" }\n";
constexpr const char* kShapes =
    "[grid]\nkind = \"list\"\nshapes = [\"1x16\", \"2x16\"]\nhead_size = 16\n";
constexpr const char* kDesign =
    "[design]\ndecide = [\"form\", \"b\"]\nerror = [1e6, 1e-4]\nruns = 14\nround_share = 0.5\n"
    "depths = [1, 2, 3, 4, 6, 8]\nsizes = [\"6K\", \"200K\"]\nmin_width = 16\n";

}  // namespace

Specimen::Specimen() {
  make_tokens();
  make_runs();
  make_studies();
  make_models();
  make_tables();
}

void Specimen::make_tokens() {
  std::string corpus, documents;
  for (int i = 0; i < 40; ++i) {
    const std::string text = data::sample_text(150, 70 + i);
    corpus += text + "\n\n";
    documents += nlohmann::json{{"text", text}, {"id", i}}.dump() + "\n";
  }
  folder_.write("corpus.txt", corpus);
  folder_.write("documents.jsonl", documents);
  if (study::run_program({"gzip", "-k", text("documents.jsonl")}).code != 0) {
    throw std::runtime_error("gzip failed");
  }
  const auto prepare = [&](const std::string& output, const std::vector<std::string>& tokenizer) {
    std::vector<std::string> command{
        "data",    "prepare", text("corpus.txt"), "-o",  text(output), "--documents", "paragraphs",
        "--valid", "0.2",     "--test",           "0.1", "--tokenizer"};
    command.insert(command.end(), tokenizer.begin(), tokenizer.end());
    must(command);
  };
  prepare("tokens", {"bytes"});
  prepare("pieces", {"bpe", "--vocab", "330"});
}

void Specimen::make_runs() {
  folder_.write("run.toml", run_spec(path("tokens")));
  folder_.write("task.toml", kTask);
  must({"train", text("run.toml"), "--out", text("done")});
  stop_half_way(path("run.toml"), path("run"));
}

void Specimen::make_studies() {
  folder_.write("study.toml", study_spec(path("corpus.txt"), kShapes));
  must({"study", "run", text("study.toml"), text("study"), "--jobs", "1"});
  folder_.write("design.toml", study_spec(path("corpus.txt"), kDesign));
  must({"study", "run", text("design.toml"), text("design"), "--jobs", "1"});
  fs::copy(path("study"), path("halted"), fs::copy_options::recursive);
  fs::remove(failed_run() / "record.json");
  study::write_failure(study::StudyRunFolder(failed_run()), "the specimen's worker was stopped");
  must({"lab", "run", "corollary-1", "--quick", "--out", text("lab")});
  must({"rank", "table", "--layers", "2", "--widths", "1-2", "--records", text("ranks.jsonl")});
}

/// A model that lost neurons, and with them the evenness of its layers (docs/sizing.md).
void Specimen::make_sized_model() {
  train::Weights weights = train::load_weights(path("done"));
  const auto width = static_cast<std::size_t>(weights.spec.width);
  std::fill_n(weights.parameters.at("sub.1.ffn.up.weight").begin(), 2 * width, 0.0F);
  std::fill_n(weights.parameters.at("sub.1.ffn.up.bias").begin(), 2, 0.0F);
  train::save_weights(weights, path("padded"));
  must({"export", text("padded"), "--compact", "-o", text("sized")});
}

void Specimen::make_models() {
  must({"export", text("done"), "--format", "hf-gpt2", "-o", text("hf")});
  must({"import", text("hf"), "-o", text("model")});
  write_foreign_models(folder_.path());
  std::string ids;
  for (int i = 0; i < 64; ++i)
    ids += fmt::format("{}{}", 3 + 7 * i % 37, i % 16 == 15 ? "\n" : " ");
  folder_.write("ids.txt", ids);
  make_sized_model();
  fs::create_directory(path("shelf"));
  fs::copy(path("study"), path("shelf/study"), fs::copy_options::recursive);
  fs::copy(path("lab"), path("shelf/lab"), fs::copy_options::recursive);
  const ChildResult probe = run_in_child({"probe", text("done"), "--ids", text("ids.txt"), "--json",
                                          "--threads", "1", "--report", text("shelf/page.html")},
                                         300);
  if (probe.code != 0) throw std::runtime_error("the probe failed: " + probe.err);
  folder_.write("shelf/probe.json", probe.out);
}

void Specimen::make_tables() {
  folder_.write("points.csv", fits::run_points_csv(planted_points()));
  must({"study", "fit", text("points.csv"), "--save", text("law.json"), "--starts", "4",
        "--replicates", "10"});
  folder_.write("gpu.toml",
                "title = \"A GPU\"\npeak_tflops = 300\nbandwidth_gbs = 2000\nmemory_gb = 80\n"
                "multiprocessors = 108\ntrain_layer_fixed_us = 20\ndecode_layer_fixed_us = 10\n");
  folder_.write("automaton.toml", kAutomaton);
  must({"study", "report", text("study"), "-o", text("study/page.html")});
  fs::copy(path("study/report.json"), path("report.json"));
}

fs::path Specimen::first_run(const std::string& study) const {
  std::vector<fs::path> runs;
  for (const auto& entry : fs::directory_iterator(path(study) / "runs")) {
    runs.push_back(entry.path());
  }
  std::sort(runs.begin(), runs.end());
  return runs.at(0);
}

}  // namespace fathom::attack
