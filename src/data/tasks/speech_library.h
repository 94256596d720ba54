// The default corpus as labelled speeches: year and speaker are in the file's name,
// YEAR_speaker_party.txt. Read once per process.
//
// A third of the speeches is held out: of every speaker the second, fifth, eighth, ... by date.
// So held-out speeches are new, and their speakers are known from others.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/hash.h"

namespace fathom::data {

struct Speech {
  int year = 0;
  std::string speaker;
  std::string text;
  bool held_out = false;
};

struct SpeechLibrary {
  std::vector<Speech> speeches;  // by year, then name
  Hash128 hash;                  // of names and texts
};

/// The last years of the eras but the last one.
inline constexpr std::array kEraEnds{1849, 1899, 1949};
std::size_t era_of(const Speech& speech);
/// DataError, naming the era, unless every era has speeches to train on and some held out.
void require_every_era(const SpeechLibrary& library);

/// DataError when the corpus is not installed or a file's name lacks year and speaker.
std::shared_ptr<const SpeechLibrary> default_speeches();
/// The same from any folder, read afresh.
SpeechLibrary read_speeches(const std::string& folder);

}  // namespace fathom::data
