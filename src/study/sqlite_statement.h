// A prepared statement of SQLite, bound and read column by column.
#pragma once

#include <sqlite3.h>

#include <concepts>
#include <cstdint>
#include <string>

#include "core/enum_names.h"

namespace fathom::study {

class Statement {
 public:
  /// ConfigError with SQLite's message when the text is not SQL.
  Statement(sqlite3* database, const std::string& sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  /// True while there are rows; DataError when it fails. After the last row it can be bound again.
  bool step();
  int columns() const;
  std::string column_name(int column) const;

  /// Parameters count from 1, columns from 0.
  template <class T>
  void bind(int parameter, const T& value) {
    if constexpr (NamedEnum<T>) {
      bind_text(parameter, to_string(value));
    } else if constexpr (std::floating_point<T>) {
      bind_number(parameter, value);
    } else if constexpr (std::integral<T>) {
      bind_whole(parameter, static_cast<std::int64_t>(value));
    } else {
      bind_text(parameter, value);
    }
  }
  template <class T>
  void read(int column, T& value) const {
    if constexpr (NamedEnum<T>) {
      value = find_enum<T>(text(column)).value_or(T{});
    } else if constexpr (std::floating_point<T>) {
      value = number(column);
    } else if constexpr (std::integral<T>) {
      value = static_cast<T>(whole(column));
    } else {
      value = text(column);
    }
  }

 private:
  void bind_text(int parameter, const std::string& value);
  void bind_number(int parameter, double value);  // NULL when not finite
  void bind_whole(int parameter, std::int64_t value);
  std::string text(int column) const;
  double number(int column) const;  // NaN for NULL
  std::int64_t whole(int column) const;

  sqlite3* database_;
  sqlite3_stmt* handle_ = nullptr;
};

}  // namespace fathom::study
