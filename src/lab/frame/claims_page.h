// docs/claims.md from the table of claims: one line per claim, under its topic.
#pragma once

#include <string>

namespace fathom::lab {

/// The whole page as Markdown; `fathom lab list --markdown` prints it.
std::string claims_page();

}  // namespace fathom::lab
