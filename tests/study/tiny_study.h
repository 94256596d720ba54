// A study small enough for tests: bytes, four models of a few thousand parameters, a second or two.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/sample_text.h"
#include "scratch_folder.h"
#include "study/local_executor.h"
#include "study/study.h"
#include "study/study_spec.h"

namespace fathom::study {

inline std::string tiny_corpus() {
  std::string text;
  for (int i = 0; i < 30; ++i) {
    text += "= Article " + std::to_string(i) + " =\n" + data::sample_text(200, 50 + i) + "\n\n";
  }
  return text;
}

inline std::string tiny_spec(const std::filesystem::path& corpus) {
  return "title = \"Tiny\"\n[corpus]\npath = \"" + corpus.string() +
         "\"\ntokenizer = \"bytes\"\nvalid = 0.2\ntest = 0.2\neval_tokens = 512\n"
         "[grid]\nkind = \"list\"\nshapes = [\"1x16\", \"2x16\", \"1x32\", \"2x32\"]\n"
         "head_size = 16\n"
         "[budget]\ntokens = 3840\n"
         "[model]\ncontext = 32\n"
         "[train]\nbatch = 4\nlearning_rate = 0.003\neval_every = 10\ncheckpoint_every = 5\n";
}

/// A corpus, a spec and a directory for a study.
struct TinyStudy {
  ScratchFolder folder;
  std::filesystem::path corpus = folder.write("corpus.txt", tiny_corpus());
  std::filesystem::path directory = folder / "study";

  StudySpec spec(const std::vector<std::string>& settings = {}) const {
    return read_study_spec_text(tiny_spec(corpus), "tiny.toml", settings);
  }
  Study begin(const std::vector<std::string>& settings = {}) const {
    std::filesystem::create_directories(directory);
    return begin_study(directory, spec(settings));
  }
};

inline std::filesystem::path test_program() {
  return FATHOM_BINARY_DIR "/fathom";
}

inline ExecutorResult run_all(const Study& study, ExecutorEvents events = {}, int jobs = 2) {
  return run_local(study, study.all_runs(), {jobs, test_program()}, events);
}

}  // namespace fathom::study
