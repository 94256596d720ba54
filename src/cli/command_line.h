// The command tree: one source for parsing, help, man pages and shell completion.
//
// Each command file adds itself with `add_NAME_command(CommandTree&)`; nothing else knows the list
// of commands.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "cli/command.h"
#include "terminal/terminal.h"

namespace fathom {

/// For help and man pages; core/error.h has the types behind them.
inline constexpr const char* kExitCodes =
    "0 success, 2 bad request, 3 bad data, 4 device missing or failed, 70 bug, 130 stopped";

inline constexpr const char* kVersionNames = "-V,--version";

/// Where a command writes: results to out, messages to err.
struct Session {
  std::ostream& out;
  std::ostream& err;
  Terminal terminal;
};

class CommandTree {
 public:
  CommandTree();

  Command& root() { return root_; }
  const Command& root() const { return root_; }

  /// A command without `run` shows its help.
  Command& add(Command& parent, const std::string& name, CommandText text,
               std::function<void(Session&)> run);
  /// Restricts an option to listed values, with a "did you mean" on anything else.
  void restrict(Option* option, std::vector<std::string> values);

 private:
  Command root_;
};

std::string render_help(const Command& command, const Terminal& terminal);
std::string render_man_page(const Command& command);
std::string render_completion(const Command& root, const std::string& shell);

/// Parses and runs; never throws. Returns the exit code.
int run_command_line(const std::vector<std::string>& arguments, Session& session);

/// The same with results going to an open descriptor. A failure to write there is reported, and
/// success becomes exit code 3.
int run_program(const std::vector<std::string>& arguments, int output, std::ostream& err);

}  // namespace fathom
