// Conclusions from planted results: conclude() sees nothing but the parts' records, so every number
// of a page can be held against a count by hand.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "exact/rank_json.h"
#include "lab/frame/experiment.h"

namespace fathom::lab {

inline Setup planted_setup(const std::string& claim, const std::vector<GivenOption>& given = {}) {
  Setup setup = resolve_setup(find_experiment(claim), given, true);
  setup.time_limit = 1e9;
  return setup;
}

/// Refuses a wrong number of planted results: conclude() relies on one for every part.
inline Conclusion concluded(const std::string& claim, const std::vector<Json>& results,
                            const std::vector<GivenOption>& given = {}) {
  const Setup setup = planted_setup(claim, given);
  EXPECT_EQ(find_experiment(claim).plan(setup).size(), results.size()) << claim;
  return find_experiment(claim).conclude(setup, results);
}

inline const Measure& measure_of(const Conclusion& conclusion, const std::string& criterion) {
  for (const Measure& measure : conclusion.measures) {
    if (measure.criterion == criterion) return measure;
  }
  throw std::out_of_range("no measure " + criterion);
}

inline double measured(const Conclusion& conclusion, const std::string& criterion) {
  return measure_of(conclusion, criterion).value.value();
}

/// A rank as a part of an experiment keeps it.
inline Json planted_rank(std::size_t rank, exact::RankStatus status = exact::RankStatus::exact) {
  exact::RankResult result;
  result.rank = rank;
  result.status = status;
  result.rmax = result.bound = 12345;
  Json json;
  exact::add_result(json, result);
  return json;
}

inline std::vector<Json> planted_ranks(const std::vector<std::size_t>& ranks) {
  std::vector<Json> results;
  for (const std::size_t rank : ranks) results.push_back(planted_rank(rank));
  return results;
}

}  // namespace fathom::lab
