// Any bytes either open as a token file or throw DataError; no id outside the vocabulary comes out.
// Each input is tried as it is and with its header hash repaired, else nothing past it is reached.
#include <cstring>
#include <vector>

#include "core/error.h"
#include "data/evaluation_set.h"
#include "data/token_file.h"
#include "fuzz_input.h"

namespace {

using namespace fathom;
using namespace fathom::data;

void try_file(const std::string& bytes) {
  const FuzzFile file(bytes.data(), bytes.size());
  try {
    const TokenFile tokens(file.path());
    if (tokens.size() > bytes.size()) std::abort();
    try {
      tokens.verify();
    } catch (const DataError&) {
    }
    std::vector<TokenId> ids(tokens.size());
    tokens.copy(0, ids);
    for (const TokenId id : ids) {
      if (id < 0 || static_cast<std::uint64_t>(id) >= tokens.info().vocabulary) std::abort();
    }
    const EvaluationSet set(tokens, 3, 10);
    std::vector<TokenId> inputs(6), targets(6);
    set.read(set.windows() - 1, inputs, targets);
  } catch (const DataError& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  try_file(bytes);
  if (size >= 128) {
    const Hash128 hash = hash_bytes(std::string_view(bytes).substr(0, 112));
    std::memcpy(bytes.data() + 112, &hash, sizeof hash);
    try_file(bytes);
  }
  return 0;
}
