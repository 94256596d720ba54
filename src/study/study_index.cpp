#include "study/study_index.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include "core/error.h"
#include "core/text.h"
#include "study/sqlite_statement.h"

namespace fathom::study {

namespace fs = std::filesystem;
using train::Column;
using train::Quantity;

namespace {

/// "id TEXT PRIMARY KEY", "params REAL", ... Counts are REAL, so that queries divide them as people
/// expect.
struct Definitions {
  std::vector<std::string> columns;

  template <class T>
  void operator()(const Column& column, const T&) {
    if constexpr (NamedEnum<T> || std::same_as<T, std::string>) {
      add(column, columns.empty() ? "TEXT PRIMARY KEY" : "TEXT");
    } else {
      add(column, std::integral<T> && column.quantity == Quantity::plain ? "INTEGER" : "REAL");
    }
  }
  void derived(const Column& column, double) { add(column, "REAL"); }
  void add(const Column& column, const char* type) {
    columns.push_back(fmt::format("{} {}", column.name, type));
  }
};

struct Binder {
  Statement& statement;
  int parameter = 0;

  template <class T>
  void operator()(const Column&, const T& value) {
    statement.bind(++parameter, value);
  }
  void derived(const Column&, double value) { statement.bind(++parameter, value); }
};

struct RowReader {
  const Statement& statement;
  int column = 0;

  template <class T>
  void operator()(const Column&, T& value) {
    statement.read(column++, value);
  }
  void derived(const Column&, double) { ++column; }
};

std::string create_table() {
  Definitions definitions;
  const RunRow row;
  RunRow::visit_columns(row, definitions);
  return fmt::format("CREATE TABLE IF NOT EXISTS runs({})", join(definitions.columns, ", "));
}

/// An id that exists keeps its place in the table.
std::string insert_or_update() {
  std::vector<std::string> values, updates;
  for (const std::string& name : column_names()) {
    values.emplace_back("?");
    updates.push_back(fmt::format("{0}=excluded.{0}", name));
  }
  return fmt::format("INSERT INTO runs VALUES({}) ON CONFLICT(id) DO UPDATE SET {}",
                     join(values, ","), join(updates, ","));
}

/// Journals of a file; one left by an earlier file of that name would be rolled back into a new
/// one.
constexpr const char* kCompanions[] = {"-journal", "-wal", "-shm"};

void remove_database(const fs::path& file) {
  std::error_code ignored;
  fs::remove(file, ignored);
  for (const char* suffix : kCompanions) fs::remove(file.string() + suffix, ignored);
}

void write_row(Statement& statement, const RunRow& row) {
  Binder binder{statement};
  RunRow::visit_columns(row, binder);
  statement.step();
}

}  // namespace

struct StudyIndex::State {
  sqlite3* database = nullptr;
  ~State() { sqlite3_close(database); }

  bool execute(const std::string& sql) const {
    return sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
  }
  void require(const std::string& sql) const {
    if (execute(sql)) return;
    throw DataError(fmt::format("the index of the runs: {}", sqlite3_errmsg(database)));
  }
  bool open(const std::string& name) {
    sqlite3_close(database);
    database = nullptr;
    if (sqlite3_open(name.c_str(), &database) != SQLITE_OK) return false;
    sqlite3_busy_timeout(database, 1000);
    sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
    sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
    sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    // A rollback journal and not WAL, whose shared memory does not reach across machines.
    return execute("PRAGMA journal_mode=DELETE") && execute("PRAGMA synchronous=NORMAL") &&
           execute(create_table()) && has_our_columns();
  }
  bool has_our_columns() const try {
    const Statement all(database, "SELECT * FROM runs LIMIT 0");
    std::vector<std::string> names;
    for (int i = 0; i < all.columns(); ++i) names.push_back(all.column_name(i));
    return names == column_names();
  } catch (const Error&) {
    return false;  // a view, or another program's table
  }
  bool is_locked() const { return (sqlite3_errcode(database) & 0xff) == SQLITE_BUSY; }
};

StudyIndex::StudyIndex(const fs::path& file) : state_(std::make_unique<State>()) {
  if (access(file.parent_path().c_str(), W_OK) == 0) {
    if (state_->open(file.string())) return;
    if (state_->is_locked()) {
      throw DataError(fmt::format("{}: another program keeps it locked", file.string()));
    }
    remove_database(file);
    if (state_->open(file.string())) return;
  }
  if (!state_->open(":memory:")) throw InternalError("SQLite cannot open a database");
}

void StudyIndex::make_anew(const fs::path& file, const std::vector<RunRow>& rows) {
  const fs::path aside = file.string() + ".tmp";
  std::error_code error;
  remove_database(aside);
  {
    StudyIndex index(aside);
    index.rebuild(rows);
  }
  for (const char* suffix : kCompanions) fs::remove(file.string() + suffix, error);
  fs::rename(aside, file, error);
  if (error) throw DataError(fmt::format("{}: {}", file.string(), error.message()));
}

StudyIndex::StudyIndex(const std::vector<RunRow>& rows) : state_(std::make_unique<State>()) {
  if (!state_->open(":memory:")) throw InternalError("SQLite cannot open a database");
  rebuild(rows);
}

StudyIndex::~StudyIndex() = default;

void StudyIndex::rebuild(const std::vector<RunRow>& rows) {
  state_->require("BEGIN IMMEDIATE");
  try {
    Statement(state_->database, "DELETE FROM runs").step();
    Statement insert(state_->database, insert_or_update());
    for (const RunRow& row : rows) {
      if (!row.id.empty()) write_row(insert, row);
    }
  } catch (const Error&) {
    state_->execute("ROLLBACK");
    throw;
  }
  state_->require("COMMIT");
}

void StudyIndex::update(const RunRow& row) {
  Statement insert(state_->database, insert_or_update());
  write_row(insert, row);
}

bool StudyIndex::is_empty() const {
  return !Statement(state_->database, "SELECT 1 FROM runs LIMIT 1").step();
}

std::vector<RunRow> StudyIndex::query(const std::string& where, const std::string& order) const {
  std::string sql = "SELECT * FROM runs";
  if (!where.empty()) sql += " WHERE " + where;
  sql += " ORDER BY " + (order.empty() ? std::string("rowid") : order);
  Statement select(state_->database, sql);
  std::vector<RunRow> rows;
  while (select.step()) {
    RowReader reader{select};
    RunRow::visit_columns(rows.emplace_back(), reader);
  }
  return rows;
}

}  // namespace fathom::study
