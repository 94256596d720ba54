// Probes of trained models as 'fathom serve' shows them: the JSON of `fathom probe --json`, or the
// same inside a page of `fathom probe --report`. Only the data of a page is taken; it is drawn by
// this program's own page.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

namespace fathom::serve {

/// Judged by the beginning of the file.
bool holds_probe(const std::filesystem::path& file);

/// DataError in one line where it is damaged.
nlohmann::ordered_json read_probe(const std::filesystem::path& file);

/// What the overview shows of a probe, read again only when its file has changed.
class ProbeShelf {
 public:
  /// web/schema/serve.schema.json, probe_card. Any thread may call it.
  nlohmann::ordered_json card(const std::string& name, const std::filesystem::path& file);

 private:
  struct Known {
    std::filesystem::file_time_type time;
    std::uintmax_t size = 0;
    nlohmann::ordered_json card;
  };
  std::mutex mutex_;
  std::map<std::filesystem::path, Known> known_;
};

}  // namespace fathom::serve
