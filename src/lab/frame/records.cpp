#include "lab/frame/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/append_file.h"
#include "core/checksum.h"
#include "core/error.h"
#include "core/files.h"
#include "core/hash.h"
#include "core/json_file.h"
#include "core/json_text.h"
#include "lab/frame/claim.h"
#include "lab/frame/result_json.h"

namespace fathom::lab {

namespace fs = std::filesystem;

namespace {

constexpr const char* kPartsFile = "parts.jsonl";
constexpr const char* kResultsFolder = "results";

std::string result_name(const Json& document) {
  const std::string id = document.at("id");
  if (!document.at("own_setup").get<bool>()) return id + ".json";
  return fmt::format("{}-{}.json", id, hash_bytes(document.at("setup").dump()).hex().substr(0, 8));
}

/// Sort key of a document: its claim's place in the table, custom set-ups last.
std::pair<std::size_t, bool> order_of(const Json& document) {
  const std::vector<std::string> ids = claim_ids();
  const auto found = std::find(ids.begin(), ids.end(), document.at("id").get<std::string>());
  return {static_cast<std::size_t>(found - ids.begin()), document.at("own_setup").get<bool>()};
}

}  // namespace

LabRecords::LabRecords(const fs::path& directory) : directory_(directory) {
  std::error_code error;
  fs::create_directories(directory / kResultsFolder, error);
  if (error) {
    throw DataError(
        fmt::format("cannot make the folder {}: {}", directory.string(), error.message()));
  }
  const fs::path path = parts_file();
  file_ = std::make_unique<AppendFile>(path);
  for (std::size_t i = 0; i < file_->lines().size(); ++i) {
    const std::string place = fmt::format("{}:{}", path.string(), i + 1);
    const Json line = parse_ordered_json(file_->lines()[i], place);
    if (!line.is_object() || !line.contains("key") || !line["key"].is_string() ||
        !line.contains("result") || !line.contains("seconds") || !line["seconds"].is_number()) {
      throw DataError(place + ": not a record of the lab; name another directory");
    }
    const auto ended = line.find("ended");
    finished_[line["key"]] = {
        line["result"], line["seconds"].get<double>(),
        ended != line.end() && ended->is_number() ? ended->get<double>() : NAN};
  }
}

LabRecords::~LabRecords() = default;

fs::path LabRecords::parts_file() const {
  return directory_ / kPartsFile;
}

const LabRecords::Finished* LabRecords::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = finished_.find(key);
  return found == finished_.end() ? nullptr : &found->second;
}

void LabRecords::add(const std::string& key, const Json& result, double seconds) {
  using SystemClock = std::chrono::system_clock;
  const double ended = std::chrono::duration<double>(SystemClock::now().time_since_epoch()).count();
  const std::lock_guard lock(mutex_);
  file_->append(
      json_line({{"key", key}, {"result", result}, {"seconds", seconds}, {"ended", ended}}));
  finished_[key] = {result, seconds, ended};
}

void LabRecords::finish(const Json& document) {
  write_file_atomically(directory_ / kResultsFolder / result_name(document),
                        json_file_text(document, 1));
}

bool holds_results(const fs::path& directory) {
  std::error_code error;
  for (fs::directory_iterator entry(directory / kResultsFolder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".json") return true;
  }
  return false;
}

std::vector<Json> read_results(const fs::path& directory) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory / kResultsFolder, error)) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  }
  if (error || paths.empty()) {
    throw DataError(fmt::format("{} holds no results; 'fathom lab run all --out {}' makes them",
                                directory.string(), directory.string()));
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Json> documents;
  for (const fs::path& path : paths) {
    Json document = parse_ordered_json(read_text_file(path), path.string());
    check_result(document, path.string());
    document.erase(kChecksum);
    documents.push_back(std::move(document));
  }
  std::stable_sort(documents.begin(), documents.end(),
                   [](const Json& a, const Json& b) { return order_of(a) < order_of(b); });
  return documents;
}

}  // namespace fathom::lab
