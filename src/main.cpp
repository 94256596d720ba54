// The program: hands the command line to the cli room and maps its result to an exit code.
#include <unistd.h>

#include <iostream>

#include "cli/command_line.h"
#include "cli/process.h"
#include "engine/cpu/thread_waiting.h"

int main(int argc, char** argv) {
  fathom::prepare_process();
  fathom::engine::cpu::restart_with_short_waits(argv);
  return fathom::run_program({argv + 1, argv + argc}, STDOUT_FILENO, std::cerr);
}
