// The program: hands the command line to the cli room and maps its result to an exit code.
#include <unistd.h>

#include <iostream>

#include "cli/command_line.h"
#include "cli/process.h"
#include "engine/cpu/thread_waiting.h"

// Sanitizers are not yet there so early.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace {

void before_libraries(int, char** arguments, char** environment) {
  fathom::engine::cpu::restart_with_thread_settings(arguments, environment);
}
/// The loader calls what stands here before the constructors of shared libraries.
[[gnu::section(".preinit_array"), gnu::used]] void (*const first)(int, char**,
                                                                  char**) = before_libraries;

}  // namespace
#endif

int main(int argc, char** argv) {
  fathom::prepare_process();
  return fathom::run_program({argv + 1, argv + argc}, STDOUT_FILENO, std::cerr);
}
