// What a study's reader should do next: the shape to take, the runs that would decide what is still
// open, and what weakens the runs there are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fits/study_fit.h"
#include "study/run_row.h"

namespace fathom::report {

struct Advice {
  std::string text;
  std::string command = {};  // that does it; may be empty
};

struct AdviceGround {
  std::string name;  // of the study's folder, for commands; empty for a table of foreign runs
  const std::vector<study::RunRow>& rows;
  const std::optional<fits::StudyFit>& fit;
  std::int64_t text_tokens = 0;  // of the training text; 0: not known
};

/// The most important first.
std::vector<Advice> advise(const AdviceGround& ground);

}  // namespace fathom::report
