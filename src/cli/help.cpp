// Help text: usage, examples first, then options in one aligned column.
#include <fmt/format.h>

#include <algorithm>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/usage.h"
#include "core/error.h"
#include "core/text.h"

namespace fathom {

std::string usage_line(const Command& command) {
  std::string line = command.path();
  bool has_flags = false;
  for (const Option* option : command.shown_options()) {
    if (!option->is_positional()) {
      has_flags = true;
    } else {
      line += option->is_required() ? " " + option->label() : " [" + option->label() + "]";
    }
  }
  if (!command.subcommands().empty()) line += command.parent() ? " [COMMAND]" : " COMMAND";
  if (has_flags) line += " [OPTIONS]";
  return line;
}

namespace {

std::string group_of(const Option& option) {
  return option.is_positional() ? "Arguments" : option.group_name();
}

/// Two columns: label and wrapped explanation.
std::string definition_list(const std::vector<std::pair<std::string, std::string>>& entries,
                            const Terminal& terminal) {
  std::size_t label_width = 0;
  for (const auto& [label, meaning] : entries) {
    label_width = std::max(label_width, std::min<std::size_t>(display_width(label), 30));
  }
  const std::size_t room =
      std::max<std::size_t>(terminal.width, label_width + 34) - label_width - 6;
  std::string text;
  for (const auto& [label, meaning] : entries) {
    std::string line = "  " + terminal.bold(pad(label, label_width, Align::left)) + "  ";
    if (display_width(label) > label_width) {
      text += line + "\n";
      line = std::string(label_width + 4, ' ');
    }
    for (const std::string& part : wrap(meaning, room)) {
      text += line + part + "\n";
      line = std::string(label_width + 4, ' ');
    }
  }
  return text;
}

}  // namespace

std::string render_help(const Command& command, const Terminal& terminal) {
  const CommandText& about = command.text();
  std::string text = fmt::format("{}\n\n{} {}\n", terminal.accent(about.summary),
                                 terminal.bold("Usage:"), usage_line(command));
  if (!about.examples.empty()) {
    text += "\n" + terminal.bold("Examples:") + "\n";
    for (const Example& example : about.examples) {
      text +=
          fmt::format("  fathom {}\n      {}\n", example.command, terminal.dim(example.meaning));
    }
  }
  if (!about.description.empty()) {
    text += "\n";
    for (const std::string& line : wrap(about.description, terminal.width)) text += line + "\n";
  }

  std::vector<std::pair<std::string, std::string>> entries;
  for (const Command* sub : command.subcommands()) {
    entries.emplace_back(sub->name(), sub->text().summary);
  }
  if (!entries.empty()) {
    text += "\n" + terminal.bold("Commands:") + "\n" + definition_list(entries, terminal);
  }

  // Options in the order of their groups' first appearance.
  std::vector<std::string> groups;
  for (const Option* option : command.shown_options()) {
    const std::string group = group_of(*option);
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  }
  for (const std::string& group : groups) {
    entries.clear();
    for (const Option* option : command.shown_options()) {
      if (group_of(*option) != group) continue;
      const std::string value = option->value_name();
      entries.emplace_back(option->label() + (value.empty() ? "" : " " + value), option->meaning());
    }
    text += "\n" + terminal.bold(group + ":") + "\n" + definition_list(entries, terminal);
  }
  if (command.parent() == nullptr) {
    text += fmt::format("\nSee 'fathom COMMAND --help' for each. Exit codes: {}.\n", kExitCodes);
  }
  return terminal.plain(text);
}

namespace {

const Command& find_command(const Command& root, const std::vector<std::string>& words) {
  const Command* command = &root;
  for (const std::string& word : words) {
    const Command* sub = command->find_subcommand(word);
    if (sub == nullptr) {
      std::vector<std::string> known;
      for (const Command* shown : command->subcommands()) known.push_back(shown->name());
      throw ConfigError(fmt::format("'{}' has no command '{}'.{} See '{} --help'.", command->path(),
                                    word, did_you_mean(word, known), command->path()));
    }
    command = sub;
  }
  return *command;
}

}  // namespace

void add_help_command(CommandTree& tree) {
  auto words = std::make_shared<std::vector<std::string>>();
  std::vector<std::string> names;
  for (const Command* command : tree.root().subcommands()) names.push_back(command->name());
  Command& command = tree.add(
      tree.root(), "help",
      {"Show the help of a command",
       "",
       {{"help plan", "the same as plan --help"}, {"help study run", "help for a subcommand"}}},
      [&tree, words](Session& session) {
        session.out << render_help(find_command(tree.root(), *words), session.terminal);
      });
  command.add_option("COMMAND", *words, "Name of the command, and of its subcommand")
      ->suggest(std::move(names));
}

}  // namespace fathom
