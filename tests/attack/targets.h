// Which file is attacked, and which commands then read it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "attack/mutator.h"
#include "attack/specimen.h"

namespace fathom::attack {

struct Target {
  std::string name;
  std::filesystem::path file;
  Grammar grammar = Grammar::bytes;
  std::vector<std::vector<std::string>> commands;
  /// Whose bytes are the result; none: what the commands print.
  std::vector<std::filesystem::path> results;
  /// A folder that the commands write to: put back after every look.
  std::filesystem::path written;
  bool guarded = true;       // has a checksum: damage must be noticed
  bool slow = false;         // takes tenths of a second and has fewer turns among the mutants
  double usual_seconds = 0;  // of processor time, that the whole file takes
  bool interrupted = false;  // the file says how long to train: told to stop after a while
};

std::vector<Target> all_targets(const Specimen& specimen);

struct Outcome {
  std::string result;
  bool noticed = false;  // an error, or a line that names the damage
  bool in_order = true;  // no signal, no hang, a documented exit code
  bool stopped = false;  // was asked for long work, was told to stop and did
  double peak_bytes = 0;
  double seconds = 0;        // of its slowest command
  double total_seconds = 0;  // of all
  std::string talk;          // of the command that was not in order, or the last one
};

/// Runs the target's commands on what lies on disk now.
Outcome look(const Target& target);

/// Puts `content` into the target's file, looks, and puts everything back.
Outcome look_at(const Target& target, const std::string& content);

}  // namespace fathom::attack
