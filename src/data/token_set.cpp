#include "data/token_set.h"

#include <fmt/format.h>

#include "core/counts.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json_file.h"
#include "core/json_reader.h"
#include "core/json_text.h"

namespace fathom::data {
namespace {

constexpr const char* kTokensSchema = "fathom.tokens.v1";
constexpr const char* kManifest = "corpus.json";

/// A member of an object with the right type, or DataError.
template <typename Value>
Value member(const nlohmann::json& object, const char* key, const std::string& origin) {
  try {
    if constexpr (std::integral<Value>) return json_whole<Value>(object.at(key));
    return object.at(key).get<Value>();
  } catch (const nlohmann::json::exception&) {
    throw DataError(fmt::format("{}: '{}' is missing or of the wrong type", origin, key));
  }
}

}  // namespace

std::filesystem::path token_file_path(const std::filesystem::path& folder, Split split) {
  return folder / (to_string(split) + ".tokens");
}

double bytes_per_token(const TokenFileInfo& info) {
  return info.count == 0 ? 0 : as_double(info.text_bytes) / as_double(info.count);
}

Hash128 token_set_hash(const BySplit<TokenFileInfo>& splits, Hash128 tokenizer) {
  Hasher hasher;
  hasher.add_field(kTokensSchema);
  hasher.add_field(tokenizer.hex());
  for (const TokenFileInfo& info : splits) hasher.add_field(info.content.hex());
  return hasher.value();
}

bool is_token_set(const std::filesystem::path& folder) {
  std::error_code error;
  return std::filesystem::exists(folder / kManifest, error);
}

TokenSet::TokenSet(const std::filesystem::path& folder) {
  const auto manifest = folder / kManifest;
  const std::string name = manifest.string();
  if (!is_token_set(folder)) {
    throw DataError(
        fmt::format("{}: no prepared corpus here; make one with: fathom data prepare "
                    "CORPUS -o {}",
                    folder.string(), folder.string()));
  }
  const nlohmann::json document = read_json_file(manifest);
  if (member<std::string>(document, "schema", name) != kTokensSchema) {
    throw DataError(
        fmt::format("{}: another version of this file; prepare the corpus again", name));
  }
  origin_.sources = member<std::vector<std::string>>(document, "sources", name);
  origin_.documents = member<std::string>(document, "documents", name);
  const auto split_rule = member<nlohmann::json>(document, "split_rule", name);
  origin_.split.valid = member<double>(split_rule, "valid", name);
  origin_.split.test = member<double>(split_rule, "test", name);
  origin_.split.seed = member<std::uint64_t>(split_rule, "seed", name);

  tokenizer_ = load_tokenizer(folder);
  const auto belongs = [&](bool same, const std::string& part) {
    if (!same) {
      throw DataError(fmt::format("{}: {} belongs to another preparation; prepare the corpus again",
                                  folder.string(), part));
    }
  };
  const auto described = member<nlohmann::json>(document, "tokenizer", name);
  belongs(member<std::string>(described, "hash", name) == tokenizer_->hash().hex(),
          "the tokenizer");
  const auto splits = member<nlohmann::json>(document, "splits", name);
  for (const Split split : kSplits) {
    auto file = std::make_unique<TokenFile>(token_file_path(folder, split));
    const auto entry = member<nlohmann::json>(splits, to_string(split).c_str(), name);
    belongs(member<std::string>(entry, "hash", name) == file->info().content.hex() &&
                file->info().tokenizer == tokenizer_->hash() &&
                file->info().vocabulary == tokenizer_->vocabulary(),
            file->name());
    files_[split] = std::move(file);
  }
}

BySplit<TokenFileInfo> TokenSet::infos() const {
  BySplit<TokenFileInfo> splits;
  for (const Split split : kSplits) splits[split] = file(split).info();
  return splits;
}

Hash128 TokenSet::hash() const {
  return token_set_hash(infos(), tokenizer_->hash());
}

void TokenSet::verify() const {
  for (const auto& file : files_) file->verify();
}

void write_token_set_manifest(const std::filesystem::path& folder, const TokenSetOrigin& origin,
                              const BySplit<TokenFileInfo>& splits, const Tokenizer& tokenizer) {
  nlohmann::ordered_json document{
      {"schema", kTokensSchema},
      {"hash", token_set_hash(splits, tokenizer.hash()).hex()},
      {"sources", origin.sources},
      {"documents", origin.documents},
      {"split_rule",
       {{"valid", origin.split.valid}, {"test", origin.split.test}, {"seed", origin.split.seed}}},
      {"tokenizer",
       {{"kind", tokenizer.kind()},
        {"vocabulary", tokenizer.vocabulary()},
        {"hash", tokenizer.hash().hex()}}}};
  for (const Split split : kSplits) {
    const TokenFileInfo& info = splits[split];
    document["splits"][to_string(split)] = {{"tokens", info.count},
                                            {"documents", info.documents},
                                            {"text_bytes", info.text_bytes},
                                            {"hash", info.content.hex()}};
  }
  write_file_atomically(folder / kManifest, json_file_text(std::move(document)));
}

}  // namespace fathom::data
