// Any bytes either open as a token file or throw DataError; no id outside the vocabulary comes out.
// Each input is tried as it is, with its header hash repaired and with all hashes repaired, else
// nothing past them is reached.
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

void put(std::string& bytes, std::size_t at, const Hash128& hash) {
  std::memcpy(bytes.data() + at, &hash, sizeof hash);
}

/// As if every byte after the header were an id, or of a block's hash: hashes that fit.
void repair_all(std::string& bytes) {
  constexpr std::size_t kHeader = 128, kBlock = 64 << 10;
  std::uint32_t version = 0;
  std::memcpy(&version, bytes.data() + 8, sizeof version);
  std::string_view body = std::string_view(bytes).substr(kHeader);
  if (version == 2) {
    const std::size_t blocks = (body.size() + kBlock + 7) / (kBlock + 8);
    if (body.size() < 8 * blocks) return;
    body.remove_suffix(8 * blocks);
    for (std::size_t b = 0; b < blocks; ++b) {
      const std::uint64_t hash = hash_bytes(body.substr(b * kBlock, kBlock)).low;
      std::memcpy(bytes.data() + kHeader + body.size() + 8 * b, &hash, sizeof hash);
    }
    put(bytes, 80, hash_bytes(std::string_view(bytes).substr(kHeader + body.size())));
  }
  put(bytes, 48, hash_bytes(body));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  try_file(bytes);
  if (size >= 128) {
    put(bytes, 112, hash_bytes(std::string_view(bytes).substr(0, 112)));
    try_file(bytes);
    repair_all(bytes);
    put(bytes, 112, hash_bytes(std::string_view(bytes).substr(0, 112)));
    try_file(bytes);
  }
  return 0;
}
