#include "exact/rank_records.h"

#include <fmt/format.h>

#include "core/append_file.h"
#include "core/error.h"
#include "core/json_file.h"
#include "core/json_text.h"
#include "exact/rank_json.h"

namespace fathom::exact {
namespace {

/// Raised whenever results of an unchanged setting could differ.
constexpr int kMethodVersion = 1;

std::string record_key(const RankSetting& setting, const RankOptions& options) {
  std::string key = fmt::format("v{} {} seed={} primes={}", kMethodVersion, setting.key(),
                                options.seed, options.primes);
  if (options.max_side != 0) key += fmt::format(" max={}", options.max_side);
  if (!options.split) key += " whole";
  if (options.method != Method::automatic) key += fmt::format(" {}", name_of(options.method));
  return key;
}

}  // namespace

RankRecords::RankRecords(const std::filesystem::path& path)
    : file_(std::make_unique<AppendFile>(path)) {
  std::size_t number = 0;
  for (const std::string& line : file_->lines()) {
    const std::string origin = fmt::format("{}:{}", path.string(), ++number);
    const nlohmann::json record = parse_json(line, origin);
    if (!record.is_object() || !record.contains("key") || !record["key"].is_string()) {
      throw DataError(fmt::format("{} is not a rank record: it has no key", origin));
    }
    results_[record["key"].get<std::string>()] = result_from_json(record, origin);
  }
}

RankRecords::~RankRecords() = default;

const RankResult* RankRecords::find(const RankSetting& setting, const RankOptions& options) const {
  const auto found = results_.find(record_key(setting, options));
  return found == results_.end() ? nullptr : &found->second;
}

void RankRecords::add(const RankSetting& setting, const RankOptions& options,
                      const RankResult& result) {
  nlohmann::ordered_json record;
  const std::string key = record_key(setting, options);
  record["key"] = key;
  add_setting(record, setting);
  add_result(record, result);
  file_->append(json_line(std::move(record)));
  results_[key] = result;
}

}  // namespace fathom::exact
