#include <set>

#include "attack/asking.h"
#include "attack/targets.h"

namespace fathom::attack {
namespace {

using Command = std::vector<std::string>;

Command evaluation_of(const Specimen& s, const std::string& model) {
  return {"eval", s.text(model), s.text("tokens"), "--json", "--threads", "1"};
}

/// Runs and their parts.
std::vector<Target> run_targets(const Specimen& s) {
  const Command eval = evaluation_of(s, "done");
  const Command resume{"train", s.text("run.toml"), "--out", s.text("run"), "--resume"};
  const Command train{"train", s.text("run.toml"), "--out", s.text("fresh")};
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
      {"run.toml", s.path("run.toml"), Grammar::toml, {train}, {}, s.path("fresh"), false},
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
      {"tokenizer.json of tokens",
       s.path("tokens/tokenizer.json"),
       Grammar::json,
       {eval, {"data", "sample", s.text("tokens")}},
       {},
       {}},
      {"tokenizer.model",
       s.path("pieces/tokenizer.model"),
       Grammar::bytes,
       {{"data", "info", s.text("pieces"), "--json"}},
       {},
       {}},
      {"model.safetensors",
       s.path("model/model.safetensors"),
       Grammar::safetensors,
       {evaluation_of(s, "model")},
       {},
       {}},
      {"run.toml of a task",
       s.path("task.toml"),
       Grammar::toml,
       {{"train", s.text("task.toml"), "--out", s.text("fresh")}},
       {},
       s.path("fresh"),
       false},
      {"spec.toml, probed",
       s.path("done/spec.toml"),
       Grammar::toml,
       {{"probe", s.text("done"), "--ids", s.text("ids.txt"), "--quick", "--json", "--threads",
         "1"}},
       {},
       {},
       false},
      {"weights of uneven layers",
       s.path("sized/model.safetensors"),
       Grammar::safetensors,
       {evaluation_of(s, "sized")},
       {},
       {}},
      {"spec of uneven layers",
       s.path("sized/model.toml"),
       Grammar::toml,
       {evaluation_of(s, "sized")},
       {},
       {}},
      {"model.toml",
       s.path("model/model.toml"),
       Grammar::toml,
       {evaluation_of(s, "model")},
       {},
       {}},
  };
}

std::vector<Target> study_targets(const Specimen& s) {
  const std::string run = s.study_run().string();
  const std::string id = s.study_run().filename().string();
  const auto study = [&](const char* command) {
    return Command{"study", command, s.text("study"), "--json"};
  };
  const Command table{"study", "export", s.text("study"), "--format", "csv"};
  const Command verify{"verify", s.text("study"), "--json"};
  const Command report{"study", "report", s.text("study"), "-o", "-"};
  const Command events{"study",       "export", s.text("study"), "--format",
                       "tensorboard", "-o",     s.text("events")};
  const Command show{"study", "show", s.text("study"), id, "--json"};
  return {
      {"metrics.jsonl", run + "/metrics.jsonl", Grammar::json_lines, {show, events}, {}, {}},
      {"metrics, reported", run + "/metrics.jsonl", Grammar::json_lines, {report}, {}, {}, false},
      {"record.json", run + "/record.json", Grammar::json, {table, study("status")}, {}, {}},
      {"record, reported",
       run + "/record.json",
       Grammar::json,
       {report, events, verify},
       {},
       {},
       false},
      {"failed.json",
       s.failed_run() / "failed.json",
       Grammar::json,
       {{"study", "status", s.text("halted"), "--json"}},
       {},
       {}},
      {"study.toml",
       s.path("study/study.toml"),
       Grammar::toml,
       {study("status"), study("list")},
       {},
       {}},
      {"corpus.json of a study",
       s.path("study/corpus.json"),
       Grammar::json,
       {{"study", "run", s.text("study")}, table},
       {},
       s.path("study")},
      {"design.json",
       s.path("design/design.json"),
       Grammar::json,
       {{"study", "status", s.text("design"), "--json"}},
       {},
       {}},
  };
}

/// What is made from finished runs and proofs.
std::vector<Target> result_targets(const Specimen& s) {
  return {
      {"points.csv",
       s.path("points.csv"),
       Grammar::csv,
       {{"study", "fit", s.text("points.csv"), "--json", "--starts", "2", "--replicates", "0"}},
       {},
       {}},
      {"points.csv, reported",
       s.path("points.csv"),
       Grammar::csv,
       {{"study", "report", s.text("points.csv"), "-o", "-"}},
       {},
       {},
       false},
      {"record, fitted",
       s.first_run("design") / "record.json",
       Grammar::json,
       {{"study", "fit", s.text("design"), "--json", "--starts", "2", "--replicates", "0"}},
       {},
       s.path("design"),
       false},
      {"automaton",
       s.path("automaton.toml"),
       Grammar::toml,
       {{"lab", "run", "hard-attention", "--dfa", s.text("automaton.toml"), "--length", "4",
         "--json"}},
       {},
       {},
       false},
      {"law.json",
       s.path("law.json"),
       Grammar::json,
       {{"plan", "100M", "--law", "study:" + s.text("law.json"), "--json"}},
       {},
       {}},
      {"report document",
       s.path("report.json"),
       Grammar::json,
       {{"study", "report", s.text("report.json"), "-o", "-"}},
       {},
       {},
       false},
      {"lab results",
       s.path("lab/results/corollary-1.json"),
       Grammar::json,
       {{"lab", "list", s.text("lab"), "--json"}},
       {},
       {}},
      {"lab results, reported",
       s.path("lab/results/corollary-1.json"),
       Grammar::json,
       {{"lab", "report", s.text("lab"), "-o", "-"}},
       {},
       {},
       false},
      {"lab parts",  // guarded, but what is printed tells the time
       s.path("lab/parts.jsonl"),
       Grammar::json_lines,
       {{"lab", "run", "corollary-1", "--quick", "--out", s.text("lab")}},
       {},
       s.path("lab"),
       false},
      {"rank records",
       s.path("ranks.jsonl"),
       Grammar::json_lines,
       {{"rank", "table", "--layers", "2", "--widths", "1-2", "--records", s.text("ranks.jsonl")}},
       {},
       {}},
  };
}

/// Pages of `fathom serve`, and what other commands read of the same files.
std::vector<Target> served_targets(const Specimen& s) {
  const auto run = std::filesystem::path("shelf/study/runs") / s.study_run().filename();
  const auto asked = [&](std::vector<std::string> addresses) {
    Command command{kAsk, s.text("shelf"), "/api/overview", "/"};
    command.insert(command.end(), addresses.begin(), addresses.end());
    return command;
  };
  const auto target = [&](const char* name, const std::string& file, Grammar grammar,
                          std::vector<Command> commands) {
    return Target{name, s.path(file), grammar, std::move(commands), {}, {}, false};
  };
  const std::string probe = s.text("shelf/probe.json");
  const Command study = asked({"/study/study", "/api/study/study?seen=0"});
  return {
      target("probe document", "shelf/probe.json", Grammar::json,
             {asked({"/probe/probe"}), {"probe", "--compare", probe, probe, "--json"}}),
      target("probe page, served", "shelf/page.html", Grammar::bytes, {asked({"/probe/page"})}),
      target("record, served", run / "record.json", Grammar::json, {study}),
      target("metrics, served", run / "metrics.jsonl", Grammar::json_lines, {study}),
      target("study.toml, served", "shelf/study/study.toml", Grammar::toml, {study}),
      target("lab results, served", "shelf/lab/results/corollary-1.json", Grammar::json,
             {asked({"/lab/lab"})}),
  };
}

/// What people and other programs write: no checksums, so that only crashes count.
std::vector<Target> foreign_targets(const Specimen& s) {
  const auto probe = [&](const std::string& model) {
    return Command{"probe",   s.text(model), "--ids",     s.text("ids.txt"),
                   "--quick", "--json",      "--threads", "1"};
  };
  const auto generate = [&](const std::string& model) {
    return Command{"generate", s.text(model), "--prompt",  "the hand",
                   "--tokens", "4",           "--threads", "1"};
  };
  const auto plan = [&](const char* option, const std::string& path) {
    return Command{"plan", "100M", option, path, "--json"};
  };
  const Command import{"import", s.text("hf"), "-o", s.text("fresh")};
  const std::string shard = "hub/model-00001-of-00001.safetensors";
  const auto target = [&](const char* name, const std::string& file, Grammar grammar,
                          std::vector<Command> commands, const std::string& written = {}) {
    return Target{name,    s.path(file),
                  grammar, std::move(commands),
                  {},      written.empty() ? std::filesystem::path() : s.path(written),
                  false};
  };
  return {
      target("config.json", "hf/config.json", Grammar::json,
             {evaluation_of(s, "hf"),
              {"shape", s.text("hf"), "--json"},
              {"compare", s.text("hf"), "12x768", "--json"}}),
      target("config, imported", "hf/config.json", Grammar::json, {import}, "fresh"),
      target("weights, imported", "hf/model.safetensors", Grammar::safetensors, {import}, "fresh"),
      target("config of a hub", "hub/config.json", Grammar::json, {probe("hub"), generate("hub")}),
      target("tokenizer.json of a hub", "hub/tokenizer.json", Grammar::json, {generate("hub")}),
      target("index of a hub", "hub/model.safetensors.index.json", Grammar::json, {probe("hub")}),
      target(
          "shard of a hub", shard, Grammar::safetensors,
          {probe("hub"), {"export", s.text("hub"), "--format", "hf-llama", "-o", s.text("fresh")}},
          "fresh"),
      target("GGUF", "model.gguf", Grammar::bytes, {generate("model.gguf"), probe("model.gguf")}),
      target("llama2.c", "model.bin", Grammar::bytes, {probe("model.bin")}),
      target("token ids", "ids.txt", Grammar::csv, {probe("hub")}),
      target("hardware", "gpu.toml", Grammar::toml,
             {plan("--hardware", s.text("gpu.toml")),
              {"shape", "12x768", "--hardware", s.text("gpu.toml"), "--json"}}),
      target("spec of a study", "study.toml", Grammar::toml,
             {{"study", "plan", s.text("study.toml"), "--json", "--jobs", "1"}}),
      target("spec of a design", "design.toml", Grammar::toml,
             {{"study", "plan", s.text("design.toml"), "--json", "--jobs", "1"}}),
      target("documents", "documents.jsonl", Grammar::json_lines,
             {{"data", "prepare", s.text("documents.jsonl"), "-o", s.text("fresh"), "--tokenizer",
               "bytes"}},
             "fresh"),
      target("documents.gz", "documents.jsonl.gz", Grammar::bytes,
             {{"data", "prepare", s.text("documents.jsonl.gz"), "-o", s.text("fresh"),
               "--tokenizer", "bytes"}},
             "fresh"),
      target("law on the map", "law.json", Grammar::json,
             {{"plan", "100M", "--html", s.text("map.html"), "--overlay", s.text("law.json")}}),
  };
}

}  // namespace

std::vector<Target> all_targets(const Specimen& specimen) {
  // Those that train, fit, plan a study or draw a page.
  static const std::set<std::string> slow{
      "checkpoint, resumed", "run.toml",       "run.toml of a task",   "train.tokens",
      "points.csv",          "record, fitted", "points.csv, reported", "spec of a study",
      "spec of a design",    "law on the map"};
  std::vector<Target> all = run_targets(specimen);
  for (auto part : {study_targets(specimen), result_targets(specimen), served_targets(specimen),
                    foreign_targets(specimen)}) {
    all.insert(all.end(), std::make_move_iterator(part.begin()),
               std::make_move_iterator(part.end()));
  }
  for (Target& target : all) {
    target.slow = slow.contains(target.name);
    target.interrupted = target.name.starts_with("run.toml");
  }
  return all;
}

}  // namespace fathom::attack
