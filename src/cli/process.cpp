#include "cli/process.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

namespace fathom {
namespace {

/// Only calls that are safe in a signal handler.
[[noreturn]] void end_by_bus_error(int) {
  constexpr char kText[] =
      "fathom: a file was cut short while it was being read, or its disk failed; restore it and "
      "run the command again\n";
  [[maybe_unused]] const ssize_t ignored = write(STDERR_FILENO, kText, sizeof kText - 1);
  _exit(3);
}

}  // namespace

void prepare_process() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF) open("/dev/null", O_RDONLY);
  }
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGBUS, end_by_bus_error);
}

}  // namespace fathom
