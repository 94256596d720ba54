// A table of finished runs: columns id, layers, width, params, tokens, loss, seed (any order, other
// columns are ignored). The names that other tools give them are accepted too (d_model, val_loss,
// ...); id and seed may be missing.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fits/run_point.h"

namespace fathom::fits {

struct RowCondition {
  std::string column, value;
  bool equal = true;  // false: every other value
};

/// Which rows and which count to take from a wider table.
struct PointSelection {
  std::vector<RowCondition> where;                  // all must hold
  std::string params_column;                        // "": params or nonembedding_params
  std::map<std::string, std::string> columns = {};  // of a CSV: {"loss", "eval/nll"}

  bool takes_all() const { return where.empty() && params_column.empty(); }
};

/// "loss=eval/nll" -> loss, eval/nll. ConfigError unless the first is a column of this table.
std::pair<std::string, std::string> parse_column(const std::string& text);

/// DataError names the row and what is wrong.
std::vector<RunPoint> read_run_points(const std::filesystem::path& path,
                                      const PointSelection& selection = {});

/// The table that read_run_points reads back.
std::string run_points_csv(const std::vector<RunPoint>& points);

}  // namespace fathom::fits
