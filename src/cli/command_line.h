// The command tree: one source for parsing, help, man pages and shell completion.
//
// A command is a CLI11 App plus what CLI11 has no place for: examples, a longer description, the
// values an option accepts, and the function to run. Each command file adds itself with
// `add_NAME_command(CommandTree&)`; nothing else knows the list of commands.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "terminal/terminal.h"

namespace fathom {

/// Where a command writes: results to out, talk to err.
struct Session {
  std::ostream& out;
  std::ostream& err;
  Terminal terminal;
};

struct Example {
  std::string command;  // without the leading "fathom "
  std::string meaning;
};

struct CommandText {
  std::string summary;      // one line, starts with a capital, no full stop
  std::string description;  // paragraphs
  std::vector<Example> examples;
};

class CommandTree {
 public:
  CommandTree();

  CLI::App& root() { return root_; }
  const CLI::App& root() const { return root_; }

  CLI::App& add(CLI::App& parent, const std::string& name, CommandText text,
                std::function<void(Session&)> run);
  /// Restricts an option to listed values, with a "did you mean" on anything else.
  void restrict(CLI::Option* option, std::vector<std::string> values);

  const CommandText& text(const CLI::App& command) const { return entries_.at(&command).text; }
  const std::vector<std::string>& values(const CLI::Option& option) const;
  void run(const CLI::App& command, Session& session) const;

 private:
  struct Entry {
    CommandText text;
    std::function<void(Session&)> run;
  };
  CLI::App root_;
  std::map<const CLI::App*, Entry> entries_;
  std::map<const CLI::Option*, std::vector<std::string>> values_;
};

/// Visible options of a command, in order of definition (positionals first).
std::vector<const CLI::Option*> visible_options(const CLI::App& command);
std::vector<const CLI::App*> subcommands(const CLI::App& command);
/// "-j, --json" or "SIZE".
std::string option_label(const CLI::Option& option);

std::string render_help(const CommandTree& tree, const CLI::App& command, const Terminal& terminal);
std::string render_man_page(const CommandTree& tree, const CLI::App& command);
std::string render_completion(const CommandTree& tree, const std::string& shell);

/// Parses and runs; never throws. Returns the exit code.
int run_command_line(const std::vector<std::string>& arguments, Session& session);

}  // namespace fathom
