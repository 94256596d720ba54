// A prepared corpus: a folder with one token file per split, the tokenizer and corpus.json.
//
// corpus.json is written last and names the content hash of every file, so a folder opens only when
// all its parts belong together. hash() names the whole: equal hashes mean equal tokens in every
// split and an equal tokenizer, whatever the folder or the machine.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/enum_array.h"
#include "data/corpus.h"
#include "data/split.h"
#include "data/token_file.h"
#include "data/tokenizer.h"

namespace fathom::data {

/// What corpus.json says about where the tokens come from.
struct TokenSetOrigin {
  std::vector<std::string> sources;
  std::string documents;
  SplitRule split;
};

template <class T>
using BySplit = EnumArray<Split, T>;

class TokenSet {
 public:
  /// DataError when a part is missing, malformed, or of another preparation.
  explicit TokenSet(const std::filesystem::path& folder);

  const TokenFile& file(Split split) const { return *files_[split]; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const TokenSetOrigin& origin() const { return origin_; }
  BySplit<TokenFileInfo> infos() const;
  Hash128 hash() const;
  /// Reads all tokens and compares their hashes; DataError when one differs.
  void verify() const;

 private:
  TokenSetOrigin origin_;
  std::unique_ptr<Tokenizer> tokenizer_;
  BySplit<std::unique_ptr<TokenFile>> files_;
};

/// Whether the folder holds a prepared corpus: its manifest, which is written last, is there.
bool is_token_set(const std::filesystem::path& folder);
std::filesystem::path token_file_path(const std::filesystem::path& folder, Split split);
/// Bytes of text a token stands for on average, end-of-document tokens included; 0 when empty.
double bytes_per_token(const TokenFileInfo& info);
/// The hash that names a token set with these parts.
Hash128 token_set_hash(const BySplit<TokenFileInfo>& splits, Hash128 tokenizer);
void write_token_set_manifest(const std::filesystem::path& folder, const TokenSetOrigin& origin,
                              const BySplit<TokenFileInfo>& splits, const Tokenizer& tokenizer);

}  // namespace fathom::data
