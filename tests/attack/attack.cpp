// The standing attack on Fathom's files. The short form is in ./test.sh; the long one by hand:
//
//   build/release/attack flips 5000 [SEED]     bits flipped and ends cut off in every guarded file
//   build/release/attack mutants 200000 [SEED] files that are nearly right, to every reader
//   build/release/attack kills 1000 [SEED]     kill -9 at any file-system call of train and study
//   build/release/attack faults 1000 [SEED]    such calls that fail instead (full disk, EIO,
//   EINTR),
//                                              or a wall clock that steps back
//
// Ends with 0 when nothing went silently wrong, crashed or hung; 1 otherwise, with every case. A
// case is repeated by its seed and number: `attack mutants 1 SEED NUMBER` is that one alone, and
// the files of mutants that went wrong are kept in findings/. SIGTERM ends an attack early with the
// table of what it did. tests/attack/all.sh runs all kinds on many cores.
//
// With any other arguments it is fathom itself: the workers of a study are processes of the program
// that runs it.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>

#include "attack/child.h"
#include "attack/kills.h"
#include "attack/summary.h"
#include "attack/targets.h"
#include "cli/command_line.h"

namespace fathom::attack {
namespace {

struct Tally {
  std::size_t cases = 0, noticed = 0, harmless = 0, stopped = 0, wrong = 0;
  double seconds = 0;  // of processor time, all together
};

void print_table(const std::map<std::string, Tally>& tallies, const char* third) {
  const auto row = [](const std::string& name, const Tally& tally) {
    fmt::print("{:<26} {:>8} {:>8} {:>9} {:>8} {:>8} {:>9.1f}\n", name, tally.cases, tally.noticed,
               tally.harmless, tally.stopped, tally.wrong, tally.seconds);
  };
  fmt::print("{:<26} {:>8} {:>8} {:>9} {:>8} {:>8} {:>9}\n", "file", "cases", "noticed", "harmless",
             "stopped", third, "seconds");
  Tally sum;
  for (const auto& [name, tally] : tallies) {
    row(name, tally);
    sum.seconds += tally.seconds;
    sum.cases += tally.cases;
    sum.noticed += tally.noticed;
    sum.harmless += tally.harmless;
    sum.stopped += tally.stopped;
    sum.wrong += tally.wrong;
  }
  row("all", sum);
}

void tell(std::size_t number, const Target& target, const std::string& what,
          const std::string& talk) {
  fmt::print(stderr, "case {}: {}: {}\n  {}\n", number, target.name, what, talk.substr(0, 400));
}

/// The file of a case that went wrong, to be tried again by hand: findings/mutants-SEED-NUMBER.
void keep(const char* attack, std::uint64_t seed, std::size_t number, const std::string& content) {
  std::filesystem::create_directories("findings");
  std::ofstream(fmt::format("findings/{}-{}-{}", attack, seed, number), std::ios::binary)
      << content;
}

/// A generator of its own for every case: one case can be repeated without the others.
Random generator(std::uint64_t seed, std::size_t number) {
  std::seed_seq words{seed, static_cast<std::uint64_t>(number)};
  return Random(words);
}

void add(Summary& summary, Tally& tally, const Outcome& outcome, std::size_t cases) {
  tally.cases += cases;
  tally.seconds += outcome.total_seconds;
  summary.cases += cases;
  summary.seconds = std::max(summary.seconds, outcome.seconds);
  summary.bytes = std::max(summary.bytes, outcome.peak_bytes);
}

/// What the commands make of the whole file, twice the same; else nothing could be told from harm.
std::string result_unharmed(const Target& target) {
  const Outcome first = look_at(target, file_bytes(target.file));
  const Outcome second = look_at(target, file_bytes(target.file));
  if (first.noticed || first.result != second.result || first.result.empty()) {
    throw std::runtime_error(fmt::format("{}: unharmed it reads: {}", target.name, first.talk));
  }
  return first.result;
}

int flips(std::size_t count, std::uint64_t seed) {
  const Specimen specimen;
  std::map<std::string, Tally> tallies;
  std::vector<Target> targets;
  std::vector<std::string> whole;
  for (const Target& target : all_targets(specimen)) {
    if (!target.guarded) continue;
    whole.push_back(result_unharmed(target));
    targets.push_back(target);
  }
  Summary summary{"flips"};
  for (std::size_t number = 0; number < count && !told_to_stop(); ++number) {
    const std::size_t which = number % targets.size();
    const Target& target = targets[which];
    Random random = generator(seed, number);
    std::string what;
    const Outcome outcome = look_at(target, damage(file_bytes(target.file), random, what));
    Tally& tally = tallies[target.name];
    add(summary, tally, outcome, 1);
    const bool same = outcome.result == whole[which];
    if (outcome.in_order && outcome.noticed) {
      ++tally.noticed;
    } else if (outcome.in_order && same) {
      ++tally.harmless;
    } else {
      ++tally.wrong;
      ++summary.wrong;
      tell(number, target, what, outcome.talk);
    }
    print_now_and_then(summary);
  }
  print_table(tallies, "silent");
  return print(summary);
}

/// Whose turn it is, by the number of a case: 24 turns for a quick target, one for a slow one, so
/// that most of the time goes into many executions.
std::vector<std::size_t> turns_of(const std::vector<Target>& targets) {
  constexpr int kRounds = 24;
  std::vector<std::size_t> turns;
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t t = 0; t < targets.size(); ++t) {
      if (!targets[t].slow || round == 0) turns.push_back(t);
    }
  }
  return turns;
}

int mutants(std::size_t count, std::uint64_t seed, std::size_t first) {
  const Specimen specimen;
  std::vector<Target> targets = all_targets(specimen);
  for (Target& target : targets) {
    target.usual_seconds = 5 * kLimitSeconds;
    const Outcome whole = look_at(target, file_bytes(target.file));
    if (whole.noticed || !whole.in_order) {
      throw std::runtime_error(target.name + ": unharmed: " + whole.talk);
    }
    target.usual_seconds = whole.seconds;
  }
  const std::vector<std::size_t> turns = turns_of(targets);
  std::map<std::string, Tally> tallies;
  Summary summary{"mutants"};
  for (std::size_t number = first; summary.cases < count && !told_to_stop(); ++number) {
    const Target& target = targets[turns[number % turns.size()]];
    Random random = generator(seed, number);
    const std::string content = mutate(file_bytes(target.file), target.grammar, random);
    const Outcome outcome = look_at(target, content);
    Tally& tally = tallies[target.name];
    add(summary, tally, outcome, target.commands.size());
    tally.stopped += outcome.stopped ? 1 : 0;
    if (outcome.in_order && outcome.peak_bytes < kMostBytes) {
      ++(outcome.noticed ? tally.noticed : tally.harmless);
    } else {
      ++tally.wrong;
      ++summary.wrong;
      keep("mutants", seed, number, content);
      tell(number, target,
           fmt::format("{:.1f} s, {:.0f} MB", outcome.seconds, outcome.peak_bytes / 1e6),
           outcome.talk);
    }
    print_now_and_then(summary);
  }
  print_table(tallies, "wrong");
  return print(summary);
}

}  // namespace
}  // namespace fathom::attack

int main(int argc, char** argv) {
  using namespace fathom;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const std::string first = arguments.empty() ? "" : arguments[0];
  const std::size_t count = arguments.size() > 1 ? std::strtoull(argv[2], nullptr, 10) : 0;
  const std::uint64_t seed = arguments.size() > 2 ? std::strtoull(argv[3], nullptr, 10) : 1;
  const std::size_t begin = arguments.size() > 3 ? std::strtoull(argv[4], nullptr, 10) : 0;
  try {
    if (arguments.size() > 1 && count > 0) attack::listen_for_stop();
    if (first == "flips") return attack::flips(count, seed);
    if (first == "mutants") return attack::mutants(count, seed, begin);
    if (first == "kills") return attack::kills(count, seed);
    if (first == "faults") return attack::faults(count, seed);
  } catch (const std::exception& error) {
    fmt::print(stderr, "attack: {}\n", error.what());
    return 1;
  }
  Session session{std::cout, std::cerr, detect_terminal(STDOUT_FILENO)};
  return run_command_line(arguments, session);
}
