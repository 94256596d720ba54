#include "attack/kills.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <chrono>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "attack/mutator.h"
#include "attack/specimen.h"
#include "attack/summary.h"
#include "study/subprocess.h"

namespace fathom::attack {
namespace {

namespace fs = std::filesystem;
using study::ProgramResult;

/// A command that works for long, the folder it writes, and what it leaves there when nothing
/// happens.
struct Scene {
  std::string name;
  std::vector<std::string> first, later;  // commands; later: that goes on
  fs::path folder;
  std::string result;
  long calls = 0;  // of the file system, in its longest process
};

/// What must be equal to the last bit: losses, checkpoints, the points of a study, tokens.
std::string result_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name == "metrics.jsonl" || name == "state.safetensors" || name == "points.csv" ||
        name.ends_with(".tokens") || name == "tokenizer.json") {
      files[entry.path().string()] = file_bytes(entry.path());
    }
  }
  std::string result;
  for (const auto& [name, bytes] : files) result += name + "\n" + bytes;
  return result;
}

std::string leftovers(const fs::path& folder) {
  std::string found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".tmp") found += entry.path().string() + " ";
  }
  return found;
}

/// The program and the fault library lie beside this one.
fs::path beside(const char* name) {
  return fs::read_symlink("/proc/self/exe").parent_path() / name;
}

/// The program in a process of its own, with the fault library where a fault is given.
ProgramResult run(const std::vector<std::string>& arguments, const fs::path& under,
                  const std::string& fault, const fs::path& count = {}) {
  std::vector<std::string> command{"env"};
  if (!fault.empty() || !count.empty()) {
    command.push_back("LD_PRELOAD=" + beside("libattack_faults.so").string());
    command.push_back("FATHOM_FAULT=" + fault);
    command.push_back("FATHOM_FAULT_UNDER=" + under.string());
    if (!count.empty()) command.push_back("FATHOM_FAULT_COUNT=" + count.string());
  }
  command.push_back(beside("fathom").string());
  command.insert(command.end(), arguments.begin(), arguments.end());
  return study::run_program(command, {120, {}});
}

long largest_number(const std::string& text) {
  long largest = 0;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    largest = std::max(largest, std::atol(text.c_str() + at));
    if (text.find('\n', at) == std::string::npos) break;
  }
  return largest;
}

std::vector<Scene> scenes_of(const Specimen& specimen) {
  const auto train = [&](bool resume) {
    std::vector<std::string> command{"train", specimen.text("run.toml"), "--out",
                                     specimen.text("scene-run")};
    if (resume) command.emplace_back("--resume");
    return command;
  };
  const std::vector<std::string> begin{"study", "run", specimen.text("study.toml"),
                                       specimen.text("scene-study")};
  const std::vector<std::string> prepare{"data",
                                         "prepare",
                                         specimen.text("corpus.txt"),
                                         "-o",
                                         specimen.text("scene-tokens"),
                                         "--tokenizer",
                                         "bytes",
                                         "--documents",
                                         "paragraphs"};
  std::vector<Scene> scenes{
      {"train", train(false), train(true), specimen.path("scene-run"), "", 0},
      {"study run", begin, begin, specimen.path("scene-study"), "", 0},
      {"data prepare", prepare, prepare, specimen.path("scene-tokens"), "", 0}};
  for (Scene& scene : scenes) {
    const fs::path count = specimen.path("count");
    const ProgramResult result = run(scene.first, scene.folder, "", count);
    if (result.code != 0) throw std::runtime_error(scene.name + ": " + result.err);
    scene.result = result_of(scene.folder);
    scene.calls = largest_number(file_bytes(count));
    fs::remove(count);
    fs::remove_all(scene.folder);
  }
  return scenes;
}

/// One case: harmed, then let go on (twice where the first call made nothing to go on from).
std::string strike(const Scene& scene, const std::string& fault, bool must_pass) {
  std::string wrong;
  const ProgramResult harmed = run(scene.first, scene.folder, fault);
  const bool documented = harmed.code == 0 || harmed.code == 3 || harmed.code == 130 ||
                          harmed.code == 137;  // 128 + SIGKILL
  if (!documented || harmed.cut_short) {
    wrong = fmt::format("exit {}: {}", harmed.code, harmed.err);
  } else if (must_pass && harmed.code != 0) {
    wrong = fmt::format("'{}' ended it: exit {}: {}", fault, harmed.code, harmed.err);
  }
  ProgramResult later = run(scene.later, scene.folder, "");
  if (later.code != 0) wrong += fmt::format("the next call: {}: {}", later.code, later.err);
  if (wrong.empty() && result_of(scene.folder) != scene.result) wrong = "other bits";
  if (wrong.empty()) {
    const std::string left = leftovers(scene.folder);
    if (!left.empty()) wrong = "left: " + left;
  }
  std::error_code ignored;
  fs::remove_all(scene.folder, ignored);
  return wrong;
}

double largest_child_bytes() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

int blows(Summary summary, std::size_t count, std::uint64_t seed,
          const std::vector<std::string>& kinds) {
  const Specimen specimen;
  const std::vector<Scene> scenes = scenes_of(specimen);
  std::map<std::string, std::pair<std::size_t, std::size_t>> table;  // cases and wrong ones
  for (std::size_t number = 0; number < count && !told_to_stop(); ++number) {
    const Scene& scene = scenes[number % scenes.size()];
    std::seed_seq words{seed, static_cast<std::uint64_t>(number)};
    Random random(words);
    const std::string& kind = kinds[random() % kinds.size()];
    const long at = 1 + static_cast<long>(random() % static_cast<std::uint64_t>(scene.calls));
    const std::string fault = fmt::format("{} {}", kind, at);
    const auto begin = std::chrono::steady_clock::now();
    const bool must_pass = kind == std::to_string(EINTR) || kind == "clock";
    const std::string wrong = strike(scene, fault, must_pass);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    summary.seconds = std::max(summary.seconds, time.count());
    auto& [cases, failures] = table[scene.name + ", " + kind];
    ++cases;
    ++summary.cases;
    if (wrong.empty()) continue;
    ++failures;
    ++summary.wrong;
    fmt::print(stderr, "case {}: {}, fault '{}': {}\n", number, scene.name, fault, wrong);
  }
  fmt::print("{:<26} {:>8} {:>8}\n", "scene", "cases", "wrong");
  for (const auto& [name, counts] : table) {
    fmt::print("{:<26} {:>8} {:>8}\n", name, counts.first, counts.second);
  }
  for (const Scene& scene : scenes) {
    fmt::print("{}: {} calls of the file system in its longest process\n", scene.name, scene.calls);
  }
  summary.bytes = largest_child_bytes();
  return print(summary);
}

}  // namespace

int kills(std::size_t count, std::uint64_t seed) {
  return blows({"kills"}, count, seed, {"kill"});
}

int faults(std::size_t count, std::uint64_t seed) {
  return blows({"faults"}, count, seed,
               {std::to_string(ENOSPC), std::to_string(EIO), std::to_string(EDQUOT),
                std::to_string(EINTR), "clock"});
}

}  // namespace fathom::attack
