// A rank and its setting as JSON, the one form for output and records. Include only in .cpp files.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "exact/rank_grid.h"
#include "exact/separation_rank.h"

namespace fathom::exact {

/// Adds the setting's and the result's fields to `target`.
void add_setting(nlohmann::ordered_json& target, const RankSetting& setting);
void add_result(nlohmann::ordered_json& target, const RankResult& result);

/// Adds the ranks of all balanced partitions, each with its complement, and their groups.
void add_balanced(nlohmann::ordered_json& target, const std::vector<RankSetting>& settings,
                  const std::vector<RankResult>& results, const PartitionGroups& groups);

/// The inverse of add_result; DataError names `origin`.
RankResult result_from_json(const nlohmann::json& record, const std::string& origin);

}  // namespace fathom::exact
