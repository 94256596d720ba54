#include "study/run_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/counts.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"

namespace fathom::study {
namespace {

using train::Column;

template <class T>
std::string text_of(const T& value) {
  if constexpr (NamedEnum<T>) {
    return to_string(value);
  } else if constexpr (std::same_as<T, bool>) {
    return value ? "1" : "0";
  } else if constexpr (std::floating_point<T>) {
    return std::isfinite(value) ? fmt::format("{}", value) : "";
  } else {
    return fmt::format("{}", value);
  }
}

struct Names {
  std::vector<std::string> names;
  template <class T>
  void operator()(const Column& column, const T&) {
    names.emplace_back(column.name);
  }
  void derived(const Column& column, double) { names.emplace_back(column.name); }
};

struct Texts {
  std::vector<std::string> texts;
  template <class T>
  void operator()(const Column&, const T& value) {
    texts.push_back(text_of(value));
  }
  void derived(const Column&, double value) { texts.push_back(text_of(value)); }
};

struct ToJson {
  nlohmann::ordered_json json;
  template <class T>
  void operator()(const Column& column, const T& value) {
    json[column.name] = json_value(value);
  }
  void derived(const Column& column, double value) { json[column.name] = json_value(value); }
};

std::size_t place_of(const std::string& column) {
  const std::vector<std::string> names = column_names();
  const auto found = std::find(names.begin(), names.end(), column);
  if (found == names.end()) {
    throw DataError(fmt::format("runs have no column '{}'.{} There are: {}", column,
                                did_you_mean(column, names), join(names, ", ")));
  }
  return as_size(found - names.begin());
}

}  // namespace

RunRow row_of(const train::RunRecord& record) {
  RunRow row;
  static_cast<train::RunRecord&>(row) = record;
  return row;
}

RunRow row_of(const PlannedRun& run, const RunState& state) {
  if (state.record) return row_of(*state.record);
  RunRow row;
  row.id = run.id;
  row.layers = run.spec.model.layers;
  row.width = run.spec.model.width;
  row.heads = run.spec.model.heads;
  row.non_embedding = run.parameters;
  row.parameters = run.total_parameters;
  row.tokens = run.spec.total_tokens();
  row.seed = run.spec.seed;
  row.steps = run.spec.schedule.steps;
  row.flops = run.flops;
  row.status = state.status;
  row.reason = state.reason;
  row.damage = state.damage;
  return row;
}

std::vector<std::string> column_names() {
  Names names;
  const RunRow row;
  RunRow::visit_columns(row, names);
  return names.names;
}

std::vector<std::string> row_texts(const RunRow& row) {
  Texts texts;
  RunRow::visit_columns(row, texts);
  return texts.texts;
}

nlohmann::ordered_json row_json(const RunRow& row) {
  ToJson writer;
  RunRow::visit_columns(row, writer);
  return writer.json;
}

std::string column_text(const RunRow& row, const std::string& column) {
  return row_texts(row)[place_of(column)];
}

double column_number(const RunRow& row, const std::string& column) {
  return std::strtod(column_text(row, column).c_str(), nullptr);
}

}  // namespace fathom::study
