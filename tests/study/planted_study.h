// A study's folder whose records follow a planted law: nothing was trained.
//
//   depth L starts to win over its neighbour at N = 12 L d^2, ln d = 4.2 + 0.08 L
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "core/files.h"
#include "scratch_folder.h"
#include "study/study_folder.h"
#include "train/run_record.h"

namespace fathom::study {

inline train::RunRecord planted_record(int place, int depth_place, int run) {
  constexpr int kDepths[] = {2, 4, 8, 12};
  const double layers = kDepths[depth_place];
  const double width = std::round(std::sqrt(1e5 * std::pow(300.0, place / 5.0) / (12 * layers)));
  const double x = std::log(12 * layers * width * width);
  double log_loss = std::log(1.7 + 90 * std::exp(-0.34 * x));
  for (int j = 1; j <= depth_place; ++j) {
    const double crossing = std::log(12.0 * kDepths[j]) + 2 * (4.2 + 0.08 * kDepths[j]);
    log_loss -= 0.06 * (1 - std::exp(-(x - crossing) / 2.5));
  }
  log_loss += 0.0005 * std::sin(12.9898 * run);  // noise of a fixed pattern, 0.05 %
  train::RunRecord record;
  record.id = "run" + std::to_string(100 + run);
  record.status = train::RunStatus::finished;
  record.layers = kDepths[depth_place];
  record.width = std::llround(width);
  record.heads = 1;
  record.seed = 1;
  record.non_embedding = std::llround(12 * layers * width * width);
  record.parameters = record.non_embedding + 1000 * record.width;
  record.steps = record.timed_steps = 1000;
  record.tokens = 20'000'000;
  record.final_loss = record.best_loss = std::exp(log_loss);
  record.final_bits_per_byte = record.final_loss / 3;
  record.flops = 6.0 * static_cast<double>(record.non_embedding * record.tokens);
  record.seconds = 100;
  record.memory_bytes = 1 << 20;
  return record;
}

/// Four depths at six sizes.
inline std::vector<train::RunRecord> planted_records() {
  std::vector<train::RunRecord> records;
  for (int depth = 0; depth < 4; ++depth) {
    for (int size = 0; size < 6; ++size) {
      records.push_back(planted_record(size, depth, static_cast<int>(records.size()) + 1));
    }
  }
  return records;
}

inline void write_planted(const StudyFolder& folder, const train::RunRecord& record) {
  const StudyRunFolder run = folder.run(record.id);
  std::filesystem::create_directories(run.path());
  write_run_record(record, run.record());
  write_file_atomically(run.metrics(), "{\"step\":500,\"eval_loss\":4.0,\"bits_per_byte\":1.3}\n");
}

struct PlantedStudy {
  ScratchFolder scratch;
  StudyFolder folder{scratch / "study"};

  explicit PlantedStudy(const std::vector<train::RunRecord>& records = planted_records()) {
    std::filesystem::create_directories(folder.runs());
    write_file_atomically(folder.spec(),
                          "title = \"Planted\"\nquestion = \"Where does depth pay?\"\n"
                          "[corpus]\npath = \"gone.txt\"\ntokenizer = \"bytes\"\n"
                          "[grid]\nkind = \"list\"\nshapes = [\"2x64\"]\n"
                          "[budget]\ntokens = \"20M\"\n");
    for (const train::RunRecord& record : records) write_planted(folder, record);
  }
};

}  // namespace fathom::study
