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

/// The first of the names the table has.
std::string column_of(const CsvTable& table, std::initializer_list<const char*> names,
                      const std::string& origin) {
  for (const char* name : names) {
    if (table.has_column(name)) return name;
  }
  throw DataError(
      fmt::format("{} has no column '{}'; a table of runs needs layers, width, params, "
                  "tokens and loss",
                  origin, *names.begin()));
}

}  // namespace

std::vector<RunPoint> read_run_points(const std::filesystem::path& path,
                                      const PointSelection& selection) {
  const std::string origin = path.string();
  const CsvTable table(read_text_file(path), origin);
  const std::string layers = column_of(table, {kLayers, "depth"}, origin);
  const std::string width = column_of(table, {kWidth}, origin);
  const std::string params = selection.params_column.empty()
                                 ? column_of(table, {kParams, "nonembedding_params"}, origin)
                                 : column_of(table, {selection.params_column.c_str()}, origin);
  const std::string tokens = column_of(table, {kTokens}, origin);
  const std::string loss = column_of(table, {kLoss}, origin);
  std::vector<RunPoint> points;
  for (std::size_t row = 0; row < table.size(); ++row) {
    const bool wanted =
        std::all_of(selection.where.begin(), selection.where.end(), [&](const auto& condition) {
          return (table.cell(row, condition.column) == condition.value) == condition.equal;
        });
    if (!wanted) continue;
    const auto positive = [&](const std::string& column) {
      const double value = table.number(row, column);
      if (std::isfinite(value) && value > 0) return value;
      throw DataError(fmt::format("{} line {}: {} is {}, not a number above zero", origin, row + 2,
                                  column, value));
    };
    RunPoint point;
    point.id = table.has_column(kId) ? table.cell(row, kId) : fmt::format("row {}", row + 2);
    point.layers = std::llround(positive(layers));
    point.width = std::llround(positive(width));
    point.params = positive(params);
    point.tokens = positive(tokens);
    point.loss = positive(loss);
    if (table.has_column(kSeed)) {
      point.seed = as_size(std::llround(std::fabs(table.number(row, kSeed))));
    }
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
