#include "study/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/files.h"
#include "core/text.h"

namespace fathom::study {
namespace {

/// In the child, between fork and exec: only calls that are safe there.
[[noreturn]] void become_worker(char* const* arguments, const char* log, pid_t parent) {
  setpgid(0, 0);  // Ctrl-C reaches the parent alone, which tells its workers
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(130);  // it died before the line above
  const int messages = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const int nothing = open("/dev/null", O_RDWR);
  dup2(nothing, STDIN_FILENO);
  dup2(nothing, STDOUT_FILENO);
  dup2(messages >= 0 ? messages : nothing, STDERR_FILENO);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execv(arguments[0], arguments);
  _exit(127);
}

}  // namespace

WorkerProcess::WorkerProcess(const std::vector<std::string>& command,
                             const std::filesystem::path& log) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) become_worker(arguments.data(), log.c_str(), parent);
  if (pid_ < 0) throw InternalError(fmt::format("cannot start a worker: {}", std::strerror(errno)));
}

std::optional<WorkerExit> WorkerProcess::poll() {
  int status = 0;
  const pid_t ended = waitpid(pid_, &status, WNOHANG);
  if (ended == 0 || (ended < 0 && errno == EINTR)) return {};
  if (ended < 0) return WorkerExit{70, 0};
  if (WIFSIGNALED(status)) return WorkerExit{0, WTERMSIG(status)};
  return WorkerExit{WEXITSTATUS(status), 0};
}

void WorkerProcess::terminate() const {
  kill(pid_, SIGTERM);
}

std::vector<std::string> notes_in(const std::filesystem::path& log) {
  std::vector<std::string> notes;
  try {
    for (const std::string& line : split(read_text_file(log), '\n')) {
      if (line.starts_with(kWorkerNote)) {
        notes.push_back(printable(line.substr(std::strlen(kWorkerNote)), 500));
      }
    }
  } catch (const Error&) {  // no log, no notes
  }
  return notes;
}

std::string describe(const WorkerExit& end, const std::filesystem::path& log) {
  if (end.signal != 0) {
    return fmt::format("the worker was killed by signal {} ({})", end.signal,
                       strsignal(end.signal));
  }
  std::string last;
  try {
    for (const std::string& line : split(read_text_file(log), '\n')) {
      if (!line.empty()) last = line;
    }
  } catch (const Error&) {
  }
  if (last.starts_with("fathom: ")) last = last.substr(8);
  return last.empty() ? fmt::format("the worker ended with code {}", end.code)
                      : printable(last, 500);
}

}  // namespace fathom::study
