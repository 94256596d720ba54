// Claims about real text need the default corpus, which is missing where there was no network.
#pragma once

#include "core/error.h"
#include "data/named_corpora.h"

namespace fathom::lab {

inline bool default_corpus_is_installed() {
  try {
    data::resolve_corpus("sotu");
    return true;
  } catch (const DataError&) {
    return false;
  }
}

}  // namespace fathom::lab
