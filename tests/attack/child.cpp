#include "attack/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <ctime>
#include <sstream>

#include "attack/asking.h"
#include "cli/command_line.h"

namespace fathom::attack {
namespace {

using Clock = std::chrono::steady_clock;

void write_all(int file, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = write(file, text.data() + done, text.size() - done);
    if (count <= 0) return;
    done += static_cast<std::size_t>(count);
  }
}

[[noreturn]] void be_the_child(const std::vector<std::string>& arguments, double limit_seconds,
                               int out, int err) {
  const rlim_t limit = static_cast<rlim_t>(limit_seconds);
  const rlimit cpu{limit, limit};
  setrlimit(RLIMIT_CPU, &cpu);
  const int nothing = open("/dev/null", O_RDWR);
  dup2(nothing, STDIN_FILENO);
  dup2(nothing, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);  // what sanitizers say
  std::ostringstream result, talk;
  Session session{result, talk, Terminal{}};
  const int code =
      arguments.front() == kAsk ? ask(arguments, session) : run_command_line(arguments, session);
  write_all(err, talk.str());
  write_all(out, result.str());
  _exit(code);
}

double processor_seconds(pid_t process) {
  clockid_t clock;
  timespec time{};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Tells a child to stop, once, when it has used up its time.
class Interruption {
 public:
  Interruption(pid_t child, double seconds) : child_(child), seconds_(seconds) {}
  bool came() const { return came_; }
  void look() {
    if (came_ || processor_seconds(child_) < seconds_) return;
    kill(child_, SIGTERM);
    came_ = true;
  }

 private:
  pid_t child_;
  double seconds_;
  bool came_ = false;
};

/// Reads both ends until they close; false when the time is up.
bool drain(int out, int err, double limit_seconds, Interruption& interruption,
           ChildResult& result) {
  const auto begin = Clock::now();
  std::array<pollfd, 2> ends{{{out, POLLIN, 0}, {err, POLLIN, 0}}};
  std::array<std::string*, 2> texts{&result.out, &result.err};
  int open_ends = 2;
  while (open_ends > 0) {
    const std::chrono::duration<double> waited = Clock::now() - begin;
    if (waited.count() > limit_seconds) return false;
    interruption.look();
    if (poll(ends.data(), ends.size(), 100) <= 0) continue;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (ends[i].fd < 0 || ends[i].revents == 0) continue;
      char buffer[1 << 16];
      const ssize_t count = read(ends[i].fd, buffer, sizeof buffer);
      if (count > 0) {
        texts[i]->append(buffer, static_cast<std::size_t>(count));
      } else {
        ends[i].fd = -1;
        --open_ends;
      }
    }
  }
  return true;
}

}  // namespace

ChildResult run_in_child(const std::vector<std::string>& arguments, double limit_seconds,
                         bool interrupted) {
  int out[2], err[2];
  ChildResult result;
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) return result;
  const pid_t child = fork();
  if (child == 0) be_the_child(arguments, limit_seconds, out[1], err[1]);
  close(out[1]);
  close(err[1]);
  constexpr double kPatience = 30;  // the machine may have other work
  Interruption interruption(child, (interrupted ? 0.5 : 2) * limit_seconds);
  result.hung = !drain(out[0], err[0], kPatience * limit_seconds, interruption, result);
  if (result.hung) kill(child, SIGKILL);
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  close(out[0]);
  close(err[0]);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  result.seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  result.peak_bytes = 1024.0 * static_cast<double>(usage.ru_maxrss);
  result.hung |= WIFSIGNALED(status) && result.seconds >= limit_seconds;
  result.signal = WIFSIGNALED(status) && !result.hung ? WTERMSIG(status) : 0;
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  result.stopped = interruption.came() && result.code == 130;
  return result;
}

}  // namespace fathom::attack
