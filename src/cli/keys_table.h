// The keys of a spec file as a table: what --keys prints.
#pragma once

#include <vector>

#include "cli/command_line.h"
#include "core/spec_keys.h"

namespace fathom {

void print_keys(Session& session, const std::vector<TableDescription>& tables);

}  // namespace fathom
