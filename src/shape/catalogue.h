// The catalogue of published shapes (data/model_shapes.csv): facts with their sources.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shape/shape.h"

namespace fathom {

struct CatalogueEntry {
  std::string name;
  std::string alias;
  std::string organisation;
  int year = 0;      // of release; 0 where not sure
  std::string kind;  // decoder, decoder MoE, encoder, encoder-decoder
  std::string nominal_size;
  double stated_total = 0;  // matrices and embeddings, as the table computed it; 0 if unknown
  double tokens = 0;        // training tokens, 0 if unknown
  std::string tokens_provenance;
  std::string source;
  std::string note;
  Shape shape;

  bool dense_decoder() const { return kind == "decoder"; }
  /// Whether its parts are known well enough to be counted.
  bool countable() const { return kind != "encoder-decoder"; }
  /// One of the 50 models of Chinchilla's sweep (arXiv 2203.15556).
  bool chinchilla_sweep() const;
  /// Part of a published sweep rather than a released model or recipe.
  bool sweep_member() const;
};

const std::vector<CatalogueEntry>& catalogue();

struct PublishedMatch {
  const CatalogueEntry* entry = nullptr;
  bool exact = true;  // false: assumed to be it, and the user should be told
};

/// By name, alias or hub id ("mistralai/Mistral-7B-v0.1"). In this order: as written, ignoring
/// case; without spaces, dashes and slashes but with the points inside numbers, so that OPT-13B is
/// not OPT-1.3B; and, no longer exact, without any punctuation or as a unique part of a name.
/// ConfigError with suggestions otherwise.
PublishedMatch match_published(const std::string& name);
const CatalogueEntry& find_published(const std::string& name);

/// Entries whose name, organisation or kind contains every word of `query`.
std::vector<const CatalogueEntry*> search_catalogue(const std::string& query);

/// Released dense decoders nearest in (ln non-embedding size, ln depth), nearest first.
std::vector<const CatalogueEntry*> nearest_published(double non_embedding, double layers,
                                                     std::size_t count);

/// What people chose at a size: the tenth to the ninetieth percentile of the depths of released
/// dense decoders within 30 % of it; nothing where there are fewer than five.
struct PublishedDepths {
  std::int64_t low = 0, high = 0;
  std::size_t models = 0;
};
std::optional<PublishedDepths> published_depths(double non_embedding);

}  // namespace fathom
