#include "study/study_index.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cmath>

#include "core/error.h"

namespace fathom::study {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSchema =
    "CREATE TABLE IF NOT EXISTS runs("
    "id TEXT PRIMARY KEY, layers INTEGER, width INTEGER, heads INTEGER, params REAL, "
    "total_params REAL, tokens REAL, seed INTEGER, loss REAL, bits_per_byte REAL, status TEXT, "
    "reason TEXT, seconds REAL, tokens_per_second REAL, flops REAL, in_spec INTEGER)";
constexpr const char* kUpsert =
    "INSERT OR REPLACE INTO runs VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16)";

RunStatus parse_status(const std::string& text) {
  for (const RunStatus status :
       {RunStatus::running, RunStatus::interrupted, RunStatus::finished, RunStatus::early_stopped,
        RunStatus::diverged, RunStatus::failed}) {
    if (to_string(status) == text) return status;
  }
  return RunStatus::pending;
}

/// A prepared statement.
class Statement {
 public:
  Statement(sqlite3* db, const std::string& sql) : db_(db) {
    if (sqlite3_prepare_v2(db, sql.c_str(), -1, &handle_, nullptr) != SQLITE_OK) {
      throw ConfigError(fmt::format("the index says: {}", sqlite3_errmsg(db)));
    }
  }
  ~Statement() { sqlite3_finalize(handle_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  void text(int at, const std::string& value) {
    sqlite3_bind_text(handle_, at, value.c_str(), -1, SQLITE_TRANSIENT);
  }
  void number(int at, double value) {
    std::isfinite(value) ? sqlite3_bind_double(handle_, at, value) : sqlite3_bind_null(handle_, at);
  }
  void whole(int at, std::int64_t value) { sqlite3_bind_int64(handle_, at, value); }
  bool step() {
    const int code = sqlite3_step(handle_);
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) throw DataError(fmt::format("study.db: {}", sqlite3_errmsg(db_)));
    sqlite3_reset(handle_);
    return false;
  }
  std::string text(int column) const {
    const auto* value = sqlite3_column_text(handle_, column);
    return value == nullptr ? "" : reinterpret_cast<const char*>(value);
  }
  double number(int column) const {
    return sqlite3_column_type(handle_, column) == SQLITE_NULL
               ? NAN
               : sqlite3_column_double(handle_, column);
  }
  std::int64_t whole(int column) const { return sqlite3_column_int64(handle_, column); }

 private:
  sqlite3* db_;
  sqlite3_stmt* handle_ = nullptr;
};

void bind(Statement& statement, const RunRow& row) {
  statement.text(1, row.id);
  statement.whole(2, row.layers);
  statement.whole(3, row.width);
  statement.whole(4, row.heads);
  statement.number(5, row.params);
  statement.number(6, row.total_params);
  statement.number(7, row.tokens);
  statement.whole(8, static_cast<std::int64_t>(row.seed));
  statement.number(9, row.loss);
  statement.number(10, row.bits_per_byte);
  statement.text(11, to_string(row.status));
  statement.text(12, row.reason);
  statement.number(13, row.seconds);
  statement.number(14, row.tokens_per_second);
  statement.number(15, row.flops);
  statement.whole(16, row.in_spec ? 1 : 0);
}

RunRow read_row(const Statement& statement) {
  RunRow row;
  row.id = statement.text(0);
  row.layers = statement.whole(1);
  row.width = statement.whole(2);
  row.heads = statement.whole(3);
  row.params = statement.number(4);
  row.total_params = statement.number(5);
  row.tokens = statement.number(6);
  row.seed = static_cast<std::uint64_t>(statement.whole(7));
  row.loss = statement.number(8);
  row.bits_per_byte = statement.number(9);
  row.status = parse_status(statement.text(10));
  row.reason = statement.text(11);
  row.seconds = statement.number(12);
  row.tokens_per_second = statement.number(13);
  row.flops = statement.number(14);
  row.in_spec = statement.whole(15) != 0;
  return row;
}

}  // namespace

struct StudyIndex::State {
  sqlite3* db = nullptr;
  ~State() { sqlite3_close(db); }

  bool execute(const char* sql) const {
    return sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK;
  }
  bool open(const std::string& name) {
    sqlite3_close(db);
    db = nullptr;
    if (sqlite3_open(name.c_str(), &db) != SQLITE_OK) return false;
    sqlite3_busy_timeout(db, 5000);
    return execute("PRAGMA journal_mode=WAL") && execute("PRAGMA synchronous=NORMAL") &&
           execute(kSchema) && execute("SELECT id, in_spec FROM runs LIMIT 1");
  }
};

StudyIndex::StudyIndex(const fs::path& directory) : state_(std::make_unique<State>()) {
  const std::string path = (directory / "study.db").string();
  if (access(directory.c_str(), W_OK) == 0) {
    if (state_->open(path)) return;
    std::error_code ignored;
    for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(path + suffix, ignored);
    if (state_->open(path)) return;
  }
  if (!state_->open(":memory:")) throw InternalError("SQLite opens no database");
}

StudyIndex::~StudyIndex() = default;

void StudyIndex::rebuild(const std::vector<RunRow>& rows) {
  if (!state_->execute("BEGIN IMMEDIATE")) {
    throw DataError(fmt::format("study.db: {}", sqlite3_errmsg(state_->db)));
  }
  try {
    Statement(state_->db, "DELETE FROM runs").step();
    Statement insert(state_->db, kUpsert);
    for (const RunRow& row : rows) {
      if (row.id.empty()) continue;
      bind(insert, row);
      insert.step();
    }
  } catch (const Error&) {
    state_->execute("ROLLBACK");
    throw;
  }
  if (!state_->execute("COMMIT")) {
    throw DataError(fmt::format("study.db: {}", sqlite3_errmsg(state_->db)));
  }
}

void StudyIndex::update(const RunRow& row) {
  Statement insert(state_->db, kUpsert);
  bind(insert, row);
  insert.step();
}

std::vector<RunRow> StudyIndex::query(const std::string& where, const std::string& order) const {
  std::string sql = "SELECT * FROM runs";
  if (!where.empty()) sql += " WHERE " + where;
  sql += " ORDER BY " + (order.empty() ? std::string("rowid") : order);
  Statement select(state_->db, sql);
  std::vector<RunRow> rows;
  while (select.step()) rows.push_back(read_row(select));
  return rows;
}

std::vector<RunRow> reindex(const fs::path& directory) {
  std::vector<RunRow> rows = collect_rows(directory);
  StudyIndex(directory).rebuild(rows);
  if (access(directory.c_str(), W_OK) == 0) write_points(directory, rows);
  return rows;
}

}  // namespace fathom::study
