// What `study run` says when it ends: the best model, what the runs decide, the next command.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "study/rounds.h"

namespace fathom {

void print_study_end(Session& session, const study::Study& study, const study::RoundsResult& result,
                     bool json);

/// repetition_note of the longest run; "" where the tokens are not prepared yet.
std::string longest_repetition(const std::vector<study::PlannedRun>& runs,
                               const std::optional<study::TokenFacts>& tokens);

}  // namespace fathom
