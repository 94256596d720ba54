// What is attacked: one of every file that Fathom writes or reads, small enough for thousands of
// looks, made by Fathom's own commands.
//
//   tokens/           a prepared corpus (bytes)         pieces/    another (BPE)
//   run/              a run, stopped half-way           run.toml   its spec
//   study/            a study of two runs, done         study.toml its spec
//   model/, hf/       the run's weights, imported and exported
//   points.csv, law.json, gpu.toml                      for fit and plan
#pragma once

#include <filesystem>
#include <string>

#include "scratch_folder.h"

namespace fathom::attack {

class Specimen {
 public:
  /// Takes a few seconds; std::runtime_error when a command fails.
  Specimen();

  std::filesystem::path path(const std::string& name) const { return folder_ / name; }
  std::string text(const std::string& name) const { return path(name).string(); }
  /// Folder of the study's first run.
  std::filesystem::path study_run() const;

 private:
  ScratchFolder folder_;
};

}  // namespace fathom::attack
