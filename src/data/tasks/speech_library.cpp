#include "data/tasks/speech_library.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <mutex>

#include "core/counts.h"
#include "core/error.h"
#include "core/files.h"
#include "data/named_corpora.h"

namespace fathom::data {
namespace {

namespace fs = std::filesystem;

/// "1865_andrew_johnson_d.txt": 1865, andrew_johnson.
Speech speech_of(const fs::path& path) {
  const std::string name = path.stem().string();
  const std::size_t first = name.find('_');
  const std::size_t last = name.rfind('_');
  Speech speech;
  const char* digits_end = name.data() + std::min(first, name.size());
  const auto [end, error] = std::from_chars(name.data(), digits_end, speech.year);
  if (first == std::string::npos || last <= first + 1 || error != std::errc{} ||
      end != digits_end) {
    throw DataError(fmt::format("{}: is not named YEAR_speaker_party.txt", path.string()));
  }
  speech.speaker = name.substr(first + 1, last - first - 1);
  speech.text = read_text_file(path);
  return speech;
}

}  // namespace

std::size_t era_of(const Speech& speech) {
  return as_size(std::upper_bound(kEraEnds.begin(), kEraEnds.end(), speech.year - 1) -
                 kEraEnds.begin());
}

void require_every_era(const SpeechLibrary& library) {
  std::array<std::array<int, 2>, kEraEnds.size() + 1> counts{};
  for (const Speech& speech : library.speeches) {
    ++counts[era_of(speech)][speech.held_out ? 1 : 0];
  }
  for (std::size_t era = 0; era < counts.size(); ++era) {
    for (const bool held_out : {false, true}) {
      if (counts[era][held_out ? 1 : 0] > 0) continue;
      const std::string years = era == 0 ? fmt::format("up to {}", kEraEnds[0])
                                         : fmt::format("from {}", kEraEnds[era - 1] + 1);
      throw DataError(
          fmt::format("the speeches installed have none {} {}: the class has no label; "
                      "install the default corpus anew",
                      years, held_out ? "to hold out" : "to train on"));
    }
  }
}

SpeechLibrary read_speeches(const std::string& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().extension() == ".txt") {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());  // years have four digits: also by time
  SpeechLibrary library;
  Hasher hasher;
  std::map<std::string, std::size_t> seen;
  for (const fs::path& file : files) {
    Speech speech = speech_of(file);
    hasher.add_field(file.filename().string());
    hasher.add_field(speech.text);
    speech.held_out = seen[speech.speaker]++ % 3 == 1;
    library.speeches.push_back(std::move(speech));
  }
  library.hash = hasher.value();
  return library;
}

std::shared_ptr<const SpeechLibrary> default_speeches() {
  static std::mutex mutex;
  static std::shared_ptr<const SpeechLibrary> library;
  const std::lock_guard lock(mutex);
  if (!library) {
    library = std::make_shared<SpeechLibrary>(read_speeches(resolve_corpus("sotu").string()));
  }
  return library;
}

}  // namespace fathom::data
