#include "study/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>

#include "core/counts.h"
#include "core/error.h"

namespace fathom::study {
namespace {

using Clock = std::chrono::steady_clock;

/// Reads both pipes to their ends, whichever has something. False when patience ran out first.
bool drain(int out, int err, const Patience& patience, ProgramResult& result) {
  constexpr int kLookMilliseconds = 100;
  const auto begin = Clock::now();
  std::array<pollfd, 2> ends{{{out, POLLIN, 0}, {err, POLLIN, 0}}};
  std::array<std::string*, 2> texts{&result.out, &result.err};
  int open_ends = 2;
  while (open_ends > 0) {
    const std::chrono::duration<double> waited = Clock::now() - begin;
    if (waited.count() > patience.seconds || (patience.stop && patience.stop())) return false;
    if (poll(ends.data(), ends.size(), kLookMilliseconds) < 0 && errno != EINTR) return true;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (ends[i].fd < 0 || ends[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t count = read(ends[i].fd, buffer, sizeof buffer);
      if (count > 0) {
        texts[i]->append(buffer, as_size(count));
      } else if (count == 0 || errno != EINTR) {
        ends[i].fd = -1;
        --open_ends;
      }
    }
  }
  return true;
}

}  // namespace

ProgramResult run_program(const std::vector<std::string>& command, const Patience& patience) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0) throw InternalError("cannot create a pipe for " + command[0]);
  if (pipe2(err, O_CLOEXEC) != 0) throw InternalError("cannot create a pipe for " + command[0]);
  const pid_t child = fork();
  if (child == 0) {
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  close(out[1]);
  close(err[1]);
  ProgramResult result;
  if (child > 0) {
    result.cut_short = !drain(out[0], err[0], patience, result);
    if (result.cut_short) kill(child, SIGKILL);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    result.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  close(out[0]);
  close(err[0]);
  if (child < 0) throw InternalError("cannot start " + command[0]);
  return result;
}

}  // namespace fathom::study
