// Corpora that Fathom knows by name; `sotu` is the default of examples and tests.
//
// A named corpus is a folder of that name in $FATHOM_CORPORA, or in `corpora/` next to the program
// or in a folder above it (the source tree, when the program runs from its build folder).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace fathom::data {

const std::vector<std::string>& named_corpora();
/// A path that exists is taken as it is; then the names. DataError, saying how to install it, for a
/// named corpus that is absent.
std::filesystem::path resolve_corpus(const std::string& name);

}  // namespace fathom::data
