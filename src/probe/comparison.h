// Two probes side by side, from their JSON: of checkpoints of one training run, of a model and its
// pruned form, of two candidate models. Costs within a model are paired; between models nothing is,
// so losses are given with their intervals and compared only where they measure the same thing.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace fathom::probe {

/// What cutting a share of the layers greedily costs each of the two, nats per token.
struct ComparedCut {
  double share = 0;
  std::optional<double> a, b;  // where its curve reaches that far
};

struct Comparison {
  std::vector<std::string> sentences;
  std::vector<ComparedCut> cuts;
};

/// Both are documents of write_result (result_json.h). DataError where a field is missing.
Comparison compare_probes(const nlohmann::ordered_json& a, const nlohmann::ordered_json& b);

/// Adds `a`, `b`, `sentences` and `cuts` to a document.
void write_comparison(const nlohmann::ordered_json& a, const nlohmann::ordered_json& b,
                      nlohmann::ordered_json& document);

}  // namespace fathom::probe
