// The program: hands the command line to the cli room and maps its result to an exit code.
#include <unistd.h>

#include <iostream>

#include "cli/command_line.h"
#include "cli/process.h"
#include "engine/cpu/thread_waiting.h"
#include "terminal/terminal.h"

int main(int argc, char** argv) {
  fathom::prepare_process();
  fathom::engine::cpu::restart_with_short_waits(argv);
  std::ios::sync_with_stdio(false);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  fathom::Session session{std::cout, std::cerr, fathom::detect_terminal(STDOUT_FILENO)};
  const int code = fathom::run_command_line(arguments, session);
  std::cout.flush();
  return std::cout ? code : 1;  // a closed pipe or a full disk must not look like success
}
