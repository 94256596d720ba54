#include "attack/targets.h"

#include <algorithm>

#include "attack/child.h"

namespace fathom::attack {
namespace {

namespace fs = std::filesystem;

void write_bytes(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

/// The folder as it was, whatever happens in it.
class Restored {
 public:
  explicit Restored(fs::path folder) : folder_(std::move(folder)) {
    if (folder_.empty()) return;
    existed_ = fs::exists(folder_);
    if (existed_) fs::copy(folder_, copy_ / "copy", fs::copy_options::recursive);
  }
  ~Restored() {
    if (folder_.empty()) return;
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
    if (existed_) fs::copy(copy_ / "copy", folder_, fs::copy_options::recursive, ignored);
  }
  Restored(const Restored&) = delete;
  Restored& operator=(const Restored&) = delete;

 private:
  fs::path folder_;
  bool existed_ = false;
  ScratchFolder copy_;
};

}  // namespace

std::vector<Target> all_targets(const Specimen& s) {
  const std::string run = s.study_run().string();
  const std::string id = s.study_run().filename().string();
  const std::vector<std::string> eval{"eval",   s.text("done"), s.text("tokens"),
                                      "--json", "--threads",    "1"};
  const std::vector<std::string> show{"study", "show", s.text("study"), id, "--json"};
  const std::vector<std::string> resume{"train", s.text("run.toml"), "--out", s.text("run"),
                                        "--resume"};
  const std::vector<std::string> train{"train", s.text("run.toml"), "--out", s.text("fresh")};
  const std::vector<std::string> fit{"study",    "fit", s.text("points.csv"), "--json",
                                     "--starts", "2",   "--replicates",       "0"};
  const std::vector<std::string> status{"study", "status", s.text("study"), "--json"};
  const auto eval_of = [&](const std::string& model) {
    return std::vector<std::string>{"eval",   s.text(model), s.text("tokens"),
                                    "--json", "--threads",   "1"};
  };
  return {
      {"checkpoint, resumed",
       s.path("run/checkpoint/state.safetensors"),
       Grammar::safetensors,
       {resume},
       {s.path("run/metrics.jsonl"), s.path("run/checkpoint/state.safetensors")},
       s.path("run")},
      {"checkpoint, evaluated",
       s.path("done/checkpoint/state.safetensors"),
       Grammar::safetensors,
       {eval},
       {},
       {}},
      {"spec.toml", s.path("done/spec.toml"), Grammar::toml, {eval}, {}, {}},
      {"metrics.jsonl", run + "/metrics.jsonl", Grammar::json_lines, {show}, {}, {}},
      {"record.json",
       run + "/record.json",
       Grammar::json,
       {{"study", "export", s.text("study"), "--format", "csv"}, status},
       {},
       {}},
      {"study.toml",
       s.path("study/study.toml"),
       Grammar::toml,
       {status, {"study", "list", s.text("study"), "--json"}},
       {},
       {}},
      {"corpus.json of a study",
       s.path("study/corpus.json"),
       Grammar::json,
       {{"study", "run", s.text("study")}, {"study", "export", s.text("study"), "--format", "csv"}},
       {},
       s.path("study")},
      {"train.tokens",
       s.path("tokens/train.tokens"),
       Grammar::bytes,
       {train},
       {s.path("fresh/metrics.jsonl")},
       s.path("fresh")},
      {"valid.tokens", s.path("tokens/valid.tokens"), Grammar::bytes, {eval}, {}, {}},
      {"corpus.json of tokens",
       s.path("tokens/corpus.json"),
       Grammar::json,
       {{"data", "info", s.text("tokens"), "--json"}, eval},
       {},
       {}},
      {"tokenizer.json", s.path("tokens/tokenizer.json"), Grammar::json, {eval}, {}, {}},
      {"tokenizer.model",
       s.path("pieces/tokenizer.model"),
       Grammar::bytes,
       {{"data", "info", s.text("pieces"), "--json"}},
       {},
       {}},
      {"model.safetensors",
       s.path("model/model.safetensors"),
       Grammar::safetensors,
       {eval_of("model")},
       {},
       {}},
      {"model.toml", s.path("model/model.toml"), Grammar::toml, {eval_of("model")}, {}, {}},
      {"points.csv", s.path("points.csv"), Grammar::csv, {fit}, {}, {}},
      {"law.json",
       s.path("law.json"),
       Grammar::json,
       {{"plan", "100M", "--law", "study:" + s.text("law.json"), "--json"}},
       {},
       {}},
      {"config.json",
       s.path("hf/config.json"),
       Grammar::json,
       {eval_of("hf"), {"shape", s.text("hf"), "--json"}},
       {},
       {},
       false},
      {"hardware",
       s.path("gpu.toml"),
       Grammar::toml,
       {{"plan", "100M", "--hardware", s.text("gpu.toml"), "--json"},
        {"shape", "12x768", "--hardware", s.text("gpu.toml"), "--json"}},
       {},
       {},
       false},
      {"spec of a study",
       s.path("study.toml"),
       Grammar::toml,
       {{"study", "plan", s.text("study.toml"), "--json"}},
       {},
       {},
       false},
  };
}

Outcome look(const Target& target) {
  Outcome outcome;
  for (const auto& arguments : target.commands) {
    const ChildResult result = run_in_child(arguments);
    outcome.peak_bytes = std::max(outcome.peak_bytes, result.peak_bytes);
    outcome.seconds = std::max(outcome.seconds, result.seconds);
    outcome.noticed |= result.code != 0 || result.err.find("damage") != std::string::npos ||
                       result.err.find("note: ") != std::string::npos;
    if (outcome.in_order) outcome.talk = result.err;
    outcome.in_order &= result.in_order();
    if (target.results.empty()) outcome.result += result.out;
  }
  for (const fs::path& file : target.results) outcome.result += file_bytes(file);
  return outcome;
}

Outcome look_at(const Target& target, const std::string& content) {
  const std::string original = file_bytes(target.file);
  Outcome outcome;
  {
    const Restored restored(target.written);
    write_bytes(target.file, content);
    outcome = look(target);
  }
  write_bytes(target.file, original);
  return outcome;
}

}  // namespace fathom::attack
