// fathom bench train --print-plan: the ops of a step as a device would run them.
#pragma once

#include "cli/command_line.h"
#include "model/transformer.h"

namespace fathom {

void print_plans(Session& session,
                 const std::vector<std::unique_ptr<const model::Transformer>>& models, bool json);

}  // namespace fathom
