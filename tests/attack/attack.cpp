// The standing attack on Fathom's files. The short form is in ./test.sh; the long one by hand:
//
//   build/release/attack flips 5000 [SEED]     bits flipped and ends cut off in every guarded file
//   build/release/attack mutants 200000 [SEED] files that are nearly right, to every reader
//   build/release/attack kills 1000 [SEED]     kill -9 at any file-system call of train and study
//   run build/release/attack faults 1000 [SEED]    such calls that fail instead (full disk, EIO,
//   EINTR)
//
// Ends with 0 when nothing went silently wrong, crashed or hung; 1 otherwise, with every case. A
// case is repeated by its seed and number: the same seed makes the same cases.
//
// With any other arguments it is fathom itself: the workers of a study are processes of the program
// that runs it.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <map>

#include "attack/kills.h"
#include "attack/targets.h"
#include "cli/command_line.h"

namespace fathom::attack {
namespace {

struct Tally {
  std::size_t cases = 0, noticed = 0, harmless = 0, wrong = 0;
};

void print_table(const std::map<std::string, Tally>& tallies, const char* third) {
  fmt::print("{:<26} {:>8} {:>8} {:>9} {:>8}\n", "file", "cases", "noticed", "harmless", third);
  Tally sum;
  for (const auto& [name, tally] : tallies) {
    fmt::print("{:<26} {:>8} {:>8} {:>9} {:>8}\n", name, tally.cases, tally.noticed, tally.harmless,
               tally.wrong);
    sum.cases += tally.cases;
    sum.noticed += tally.noticed;
    sum.harmless += tally.harmless;
    sum.wrong += tally.wrong;
  }
  fmt::print("{:<26} {:>8} {:>8} {:>9} {:>8}\n", "all", sum.cases, sum.noticed, sum.harmless,
             sum.wrong);
}

void tell(std::size_t number, const Target& target, const std::string& what,
          const std::string& talk) {
  fmt::print(stderr, "case {}: {}: {}\n  {}\n", number, target.name, what, talk.substr(0, 400));
}

/// A generator of its own for every case: one case can be repeated without the others.
Random generator(std::uint64_t seed, std::size_t number) {
  std::seed_seq words{seed, static_cast<std::uint64_t>(number)};
  return Random(words);
}

int flips(std::size_t count, std::uint64_t seed) {
  const Specimen specimen;
  std::map<std::string, Tally> tallies;
  std::vector<Target> targets;
  std::vector<std::string> whole;
  for (const Target& target : all_targets(specimen)) {
    if (!target.guarded) continue;
    const Outcome first = look_at(target, file_bytes(target.file));
    const Outcome second = look_at(target, file_bytes(target.file));
    if (first.noticed || first.result != second.result || first.result.empty()) {
      fmt::print(stderr, "{}: unharmed it reads: {}\n", target.name, first.talk);
      return 1;
    }
    targets.push_back(target);
    whole.push_back(first.result);
  }
  std::size_t wrong = 0;
  for (std::size_t number = 0; number < count; ++number) {
    const std::size_t which = number % targets.size();
    const Target& target = targets[which];
    Random random = generator(seed, number);
    std::string what;
    const Outcome outcome = look_at(target, damage(file_bytes(target.file), random, what));
    Tally& tally = tallies[target.name];
    ++tally.cases;
    const bool same = outcome.result == whole[which];
    if (outcome.in_order && outcome.noticed) {
      ++tally.noticed;
    } else if (outcome.in_order && same) {
      ++tally.harmless;
    } else {
      ++tally.wrong;
      ++wrong;
      tell(number, target, what, outcome.talk);
    }
  }
  print_table(tallies, "silent");
  return wrong == 0 ? 0 : 1;
}

int mutants(std::size_t count, std::uint64_t seed) {
  constexpr double kMostBytes = 2e9;
  const Specimen specimen;
  const std::vector<Target> targets = all_targets(specimen);
  std::map<std::string, Tally> tallies;
  std::size_t wrong = 0, executions = 0;
  double slowest = 0, largest = 0;
  for (std::size_t number = 0; executions < count; ++number) {
    if (number % 10'000 == 9'999) fmt::print(stderr, "{} executions so far\n", executions);
    const Target& target = targets[number % targets.size()];
    Random random = generator(seed, number);
    const Outcome outcome =
        look_at(target, mutate(file_bytes(target.file), target.grammar, random));
    executions += target.commands.size();
    Tally& tally = tallies[target.name];
    tally.cases += target.commands.size();
    slowest = std::max(slowest, outcome.seconds);
    largest = std::max(largest, outcome.peak_bytes);
    if (outcome.in_order && outcome.peak_bytes < kMostBytes) {
      ++(outcome.noticed ? tally.noticed : tally.harmless);
    } else {
      ++tally.wrong;
      ++wrong;
      tell(number, target,
           fmt::format("{:.1f} s, {:.0f} MB", outcome.seconds, outcome.peak_bytes / 1e6),
           outcome.talk);
    }
  }
  print_table(tallies, "wrong");
  fmt::print("slowest {:.1f} s, largest {:.0f} MB\n", slowest, largest / 1e6);
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace fathom::attack

int main(int argc, char** argv) {
  using namespace fathom;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const std::string first = arguments.empty() ? "" : arguments[0];
  const std::size_t count = arguments.size() > 1 ? std::strtoull(argv[2], nullptr, 10) : 0;
  const std::uint64_t seed = arguments.size() > 2 ? std::strtoull(argv[3], nullptr, 10) : 1;
  try {
    if (first == "flips") return attack::flips(count, seed);
    if (first == "mutants") return attack::mutants(count, seed);
    if (first == "kills") return attack::kills(count, seed);
    if (first == "faults") return attack::faults(count, seed);
  } catch (const std::exception& error) {
    fmt::print(stderr, "attack: {}\n", error.what());
    return 1;
  }
  Session session{std::cout, std::cerr, detect_terminal(STDOUT_FILENO)};
  return run_command_line(arguments, session);
}
