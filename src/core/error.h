// The ways Fathom fails. Libraries throw; only main() prints and exits.
//
// The message is one line: what was wrong, where, what to do. The type carries the exit code.
#pragma once

#include <stdexcept>
#include <string>

namespace fathom {

class Error : public std::runtime_error {
 public:
  int exit_code() const { return exit_code_; }

 protected:
  Error(int exit_code, const std::string& message)
      : std::runtime_error(one_line(message)), exit_code_(exit_code) {}

 private:
  /// Keeps it to one line, whatever foreign text was quoted in it.
  static std::string one_line(std::string message) {
    for (char& c : message) {
      if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
    }
    return message;
  }

  int exit_code_;
};

/// The user asked for something that cannot be: flags, spec files, shapes.
class ConfigError : public Error {
 public:
  explicit ConfigError(const std::string& message) : Error(2, message) {}
};

/// A file or corpus is missing, unreadable or malformed.
class DataError : public Error {
 public:
  explicit DataError(const std::string& message) : Error(3, message) {}
};

/// A device or its libraries are absent or failed.
class DeviceError : public Error {
 public:
  explicit DeviceError(const std::string& message) : Error(4, message) {}
};

/// A signal or `fathom study stop` ended the work early; the same command continues it.
class StoppedError : public Error {
 public:
  explicit StoppedError(const std::string& message) : Error(130, message) {}
};

/// A bug in Fathom.
class InternalError : public Error {
 public:
  explicit InternalError(const std::string& message) : Error(70, message) {}
};

}  // namespace fathom
