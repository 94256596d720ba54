#include "study/sqlite_statement.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"

namespace fathom::study {

Statement::Statement(sqlite3* database, const std::string& sql) : database_(database) {
  if (sqlite3_prepare_v2(database, sql.c_str(), -1, &handle_, nullptr) != SQLITE_OK) {
    throw ConfigError(fmt::format("the index says: {}", sqlite3_errmsg(database)));
  }
}

Statement::~Statement() {
  sqlite3_finalize(handle_);
}

bool Statement::step() {
  const int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) {
    throw DataError(fmt::format("the index of the runs: {}", sqlite3_errmsg(database_)));
  }
  sqlite3_reset(handle_);
  return false;
}

int Statement::columns() const {
  return sqlite3_column_count(handle_);
}

std::string Statement::column_name(int column) const {
  return sqlite3_column_name(handle_, column);
}

void Statement::bind_text(int parameter, const std::string& value) {
  sqlite3_bind_text(handle_, parameter, value.c_str(), -1, SQLITE_TRANSIENT);
}

void Statement::bind_number(int parameter, double value) {
  std::isfinite(value) ? sqlite3_bind_double(handle_, parameter, value)
                       : sqlite3_bind_null(handle_, parameter);
}

void Statement::bind_whole(int parameter, std::int64_t value) {
  sqlite3_bind_int64(handle_, parameter, value);
}

std::string Statement::text(int column) const {
  const auto* value = sqlite3_column_text(handle_, column);
  return value == nullptr ? "" : reinterpret_cast<const char*>(value);
}

double Statement::number(int column) const {
  return sqlite3_column_type(handle_, column) == SQLITE_NULL
             ? NAN
             : sqlite3_column_double(handle_, column);
}

std::int64_t Statement::whole(int column) const {
  return sqlite3_column_int64(handle_, column);
}

}  // namespace fathom::study
