// A worker as a child process in its own process group, its messages in a log.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace fathom::study {

struct WorkerExit {
  int code = 0;    // of an exit
  int signal = 0;  // that killed it, or 0
};

class WorkerProcess {
 public:
  /// InternalError when the system cannot start a process.
  WorkerProcess(const std::vector<std::string>& command, const std::filesystem::path& log);

  /// How it ended, if it has ended.
  std::optional<WorkerExit> poll();
  void terminate() const;  // SIGTERM: checkpoint and end
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

/// How a worker begins a line of its log that its parent is to pass on.
inline constexpr const char* kWorkerNote = "note: ";
std::vector<std::string> notes_in(const std::filesystem::path& log);

/// "killed by signal 9 (Killed)" or "exit 3: " and the last line of the log.
std::string describe(const WorkerExit& end, const std::filesystem::path& log);

}  // namespace fathom::study
