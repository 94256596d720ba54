// The files of a study and of its runs, each named here and nowhere else.
//
//   study.toml      the spec, settings applied        lock           held by the running command
//   corpus.json     the text the tokens were made of  tokens/        the prepared corpus
//   runs/ID/        one folder per run                slurm/         scripts and logs of jobs
//   study.db        index of the runs (SQLite)        points.csv     runs with a result, for fits
//   law.json        the law they follow, if any       report.json, report.html
//   design.json     rounds of an adaptive study
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "fits/study_law.h"
#include "train/run_folder.h"

namespace fathom::study {

/// A run's own files (train/run_folder.h) and those of the study that trains it.
class StudyRunFolder : public train::RunFolder {
 public:
  using train::RunFolder::RunFolder;
  /// What the last worker said.
  std::filesystem::path log() const { return path() / "worker.log"; }
  /// Why the last worker failed.
  std::filesystem::path failure() const { return path() / "failed.json"; }
};

class StudyFolder {
 public:
  static constexpr const char* kSpec = "study.toml";
  static constexpr const char* kIndex = "study.db";
  static constexpr const char* kPoints = "points.csv";

  explicit StudyFolder(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  std::string name() const { return path_.string(); }
  std::filesystem::path spec() const { return path_ / kSpec; }
  std::filesystem::path lock() const { return path_ / "lock"; }
  std::filesystem::path corpus() const { return path_ / "corpus.json"; }
  std::filesystem::path tokens() const { return path_ / "tokens"; }
  /// Where tokens are written until they are complete.
  std::filesystem::path unfinished_tokens() const { return path_ / "tokens.tmp"; }
  std::filesystem::path runs() const { return path_ / "runs"; }
  StudyRunFolder run(const std::string& id) const { return StudyRunFolder(runs() / id); }
  std::filesystem::path index() const { return path_ / kIndex; }
  std::filesystem::path points() const { return path_ / kPoints; }
  std::filesystem::path ledger_lock() const { return path_ / "ledger.lock"; }
  std::filesystem::path law() const { return path_ / fits::kLawFile; }
  std::filesystem::path design() const { return path_ / "design.json"; }
  std::filesystem::path slurm() const { return path_ / "slurm"; }
  std::filesystem::path tensorboard() const { return path_ / "tensorboard"; }
  std::filesystem::path report_document() const { return path_ / "report.json"; }

  /// It has a spec, or runs whose spec was lost.
  bool holds_study() const {
    std::error_code error;
    return std::filesystem::exists(spec(), error) || std::filesystem::exists(runs(), error);
  }

 private:
  std::filesystem::path path_;
};

}  // namespace fathom::study
