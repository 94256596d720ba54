// What is attacked: one of every file that Fathom writes or reads, small enough for thousands of
// looks, made by Fathom's own commands.
//
//   tokens/           a prepared corpus (bytes)         pieces/    another (BPE)
//   run/              a run, stopped half-way           run.toml   its spec
//   study/            a study of two runs, done         study.toml its spec
//   halted/           the same, one run failed
//   design/           a study with rounds, done         design.toml its spec
//   model/, hf/       the run's weights, imported and exported
//   sized/            a model of uneven layers          task.toml  a run of a task
//   shelf/            a probe, a study and a lab for `fathom serve`
//   hub/, model.gguf, model.bin                         models of others (foreign.h)
//   points.csv, law.json, gpu.toml, report.json         for fit, plan and report
//   automaton.toml                                      for the lab
//   lab/, ranks.jsonl, documents.jsonl, ids.txt         for lab, rank, data and probe
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
  std::filesystem::path first_run(const std::string& study) const;
  /// Folder of the study's first run, and of the one that failed.
  std::filesystem::path study_run() const { return first_run("study"); }
  std::filesystem::path failed_run() const { return first_run("halted"); }

 private:
  void make_tokens();
  void make_runs();
  void make_studies();
  void make_models();
  void make_sized_model();
  void make_tables();

  ScratchFolder folder_;
};

}  // namespace fathom::attack
