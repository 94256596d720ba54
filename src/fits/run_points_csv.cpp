#include "fits/run_points_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/checksum.h"
#include "core/counts.h"
#include "core/csv.h"
#include "core/error.h"
#include "core/files.h"

namespace fathom::fits {
namespace {

constexpr const char* kId = "id";
constexpr const char* kLayers = "layers";
constexpr const char* kWidth = "width";
constexpr const char* kParams = "params";
constexpr const char* kTokens = "tokens";
constexpr const char* kLoss = "loss";
constexpr const char* kSeed = "seed";
constexpr RunRange kSeeds{kSeed, -9e18, 9e18};

/// What other tools call the columns; the first that the table has is taken.
const std::map<std::string, std::vector<std::string>>& aliases() {
  static const std::map<std::string, std::vector<std::string>> names{
      {kId, {"id", "run_id", "name"}},
      {kLayers, {"layers", "depth", "n_layers", "n_layer", "num_layers", "num_hidden_layers"}},
      {kWidth, {"width", "d_model", "n_embd", "hidden_size"}},
      {kParams,
       {"params", "nonembedding_params", "non_embedding_params", "n_params", "parameters"}},
      {kTokens, {"tokens", "train_tokens", "n_tokens", "tokens_seen"}},
      {kLoss, {"loss", "val_loss", "valid_loss", "validation_loss", "eval_loss", "final_loss"}},
      {kSeed, {"seed"}}};
  return names;
}

/// The column that holds `part`; empty when the table has none.
std::string find_column(const CsvTable& table, const PointSelection& selection,
                        const std::string& part, const std::string& origin) {
  const auto named = selection.columns.find(part);
  if (named != selection.columns.end()) {
    if (table.has_column(named->second)) return named->second;
    throw DataError(fmt::format("{} has no column '{}'", origin, named->second));
  }
  for (const std::string& name : aliases().at(part)) {
    if (table.has_column(name)) return name;
  }
  return "";
}

std::string column_of(const CsvTable& table, const PointSelection& selection,
                      const std::string& part, const std::string& origin) {
  std::string found = find_column(table, selection, part, origin);
  if (!found.empty()) return found;
  throw DataError(
      fmt::format("{} has no column '{}'; a table of runs needs layers, width, params, tokens and "
                  "loss. Name yours: --column {}=NAME",
                  origin, part, part));
}

}  // namespace

std::pair<std::string, std::string> parse_column(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string part = text.substr(0, equals);
  if (equals == text.npos || equals + 1 == text.size() || !aliases().contains(part)) {
    throw ConfigError(
        fmt::format("--column '{}' is not PART=NAME; parts are id, layers, width, params, tokens, "
                    "loss and seed",
                    text));
  }
  return {part, text.substr(equals + 1)};
}

std::vector<RunPoint> read_run_points(const std::filesystem::path& path,
                                      const PointSelection& selection) {
  const std::string origin = path.string();
  const CsvTable table(read_text_file(path), origin);
  PointSelection named = selection;
  if (!selection.params_column.empty()) named.columns[kParams] = selection.params_column;
  const auto required = [&](const char* part) { return column_of(table, named, part, origin); };
  const std::string layers = required(kLayers), width = required(kWidth),
                    params = required(kParams), tokens = required(kTokens), loss = required(kLoss);
  const std::string id = find_column(table, named, kId, origin);
  const std::string seed = find_column(table, named, kSeed, origin);
  std::vector<RunPoint> points;
  for (std::size_t row = 0; row < table.size(); ++row) {
    const bool wanted =
        std::all_of(selection.where.begin(), selection.where.end(), [&](const auto& condition) {
          return (table.cell(row, condition.column) == condition.value) == condition.equal;
        });
    if (!wanted) continue;
    const auto number = [&](const std::string& column, const RunRange& range) {
      const double value = table.number(row, column);
      if (range.holds(value)) return value;
      throw DataError(fmt::format("{} line {}: {} is {}, not a number from {:g} to {:g}", origin,
                                  row + 2, column, value, range.low, range.high));
    };
    RunPoint point;
    point.id = id.empty() ? fmt::format("row {}", row + 2) : table.cell(row, id);
    point.layers = std::llround(number(layers, kRunLayers));
    point.width = std::llround(number(width, kRunWidth));
    point.params = number(params, kRunParams);
    point.tokens = number(tokens, kRunTokens);
    point.loss = number(loss, kRunLoss);
    if (!seed.empty()) point.seed = as_size(std::llround(std::fabs(number(seed, kSeeds))));
    points.push_back(std::move(point));
  }
  if (points.empty()) throw DataError(fmt::format("{} holds no runs that were asked for", origin));
  return points;
}

std::string run_points_csv(const std::vector<RunPoint>& points) {
  std::string text =
      csv_line({kId, kLayers, kWidth, kParams, kTokens, kLoss, kSeed, std::string(kOpenChecksum)});
  for (const RunPoint& p : points) {
    text += fmt::format("{},{},{},{:.0f},{:.0f},{},{},\n", p.id, p.layers, p.width, p.params,
                        p.tokens, p.loss, p.seed);
  }
  return close_checksum(std::move(text));
}

}  // namespace fathom::fits
