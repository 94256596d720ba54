// Help text: usage, examples first, then options in one aligned column.
#include <fmt/format.h>

#include "cli/command_line.h"
#include "core/text.h"

namespace fathom {
namespace {

std::string full_name(const CLI::App& command) {
  return command.get_parent() == nullptr
             ? command.get_name()
             : full_name(*command.get_parent()) + " " + command.get_name();
}

std::string usage(const CLI::App& command) {
  std::string line = full_name(command);
  bool has_flags = false;
  for (const CLI::Option* option : visible_options(command)) {
    if (!option->get_positional()) {
      has_flags = true;
    } else {
      line += option->get_required() ? " " + option->get_name() : " [" + option->get_name() + "]";
    }
  }
  if (!subcommands(command).empty()) line += command.get_parent() ? " [COMMAND]" : " COMMAND";
  if (has_flags) line += " [OPTIONS]";
  return line;
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

std::string render_help(const CommandTree& tree, const CLI::App& command,
                        const Terminal& terminal) {
  const CommandText& about = tree.text(command);
  std::string text = fmt::format("{}\n\n{} {}\n", terminal.accent(about.summary),
                                 terminal.bold("Usage:"), usage(command));
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
  for (const CLI::App* sub : subcommands(command)) {
    entries.emplace_back(sub->get_name(), tree.text(*sub).summary);
  }
  if (!entries.empty()) {
    text += "\n" + terminal.bold("Commands:") + "\n" + definition_list(entries, terminal);
  }

  // Options in the order of their groups' first appearance.
  std::vector<std::string> groups;
  for (const CLI::Option* option : visible_options(command)) {
    const std::string group = option->get_positional() ? "Arguments" : option->get_group();
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  }
  for (const std::string& group : groups) {
    entries.clear();
    for (const CLI::Option* option : visible_options(command)) {
      if ((option->get_positional() ? "Arguments" : option->get_group()) != group) continue;
      std::string label = option_label(*option);
      if (!option->get_positional() && option->get_expected_max() > 0 &&
          !option->get_type_name().empty()) {
        label += " " + option->get_type_name();
      }
      std::string meaning = option->get_description();
      if (!tree.values(*option).empty()) {
        meaning += fmt::format(" ({})", join(tree.values(*option), " | "));
      }
      entries.emplace_back(label, meaning);
    }
    text += "\n" + terminal.bold(group + ":") + "\n" + definition_list(entries, terminal);
  }
  if (command.get_parent() == nullptr) {
    text +=
        "\nSee 'fathom COMMAND --help' for each. Exit codes: 0 done, 2 wrong request, "
        "3 bad data, 4 no device, 70 bug.\n";
  }
  return terminal.plain(text);
}

}  // namespace fathom
