// CLI11 parses; what it says about a wrong command line is put into the program's own words.
#include "cli/parse.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "cli/command_line.h"
#include "core/error.h"
#include "core/text.h"

namespace fathom {
namespace {

bool is_whole(const OptionTarget& target) {
  return std::holds_alternative<int*>(target) || std::holds_alternative<unsigned*>(target) ||
         std::holds_alternative<std::int64_t*>(target) ||
         std::holds_alternative<std::uint64_t*>(target);
}

template <class Number>
bool reads_as(const std::string& word, Number& value) {
  const char* end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, value);
  return error == std::errc{} && rest == end;
}

/// What is wrong with a number; empty when nothing is.
std::string explain_number(const Option& option, const std::string& word) {
  const bool whole = is_whole(option.target());
  double value = 0;
  std::int64_t whole_value = 0;
  const bool readable = reads_as(word, value) && (!whole || reads_as(word, whole_value));
  const Range range = option.range().value_or(Range{-HUGE_VAL, HUGE_VAL});
  if (readable && value >= range.low && value <= range.high) return "";
  std::string message = fmt::format("'{}' is not a {}", word, whole ? "whole number" : "number");
  if (!option.range()) return message;
  return message + (range.has_top() ? fmt::format(" from {:.10g} to {:.10g}", range.low, range.high)
                                    : fmt::format(" of at least {:.10g}", range.low));
}

void restrict_values(CLI::Option& parsed, const Option& option) {
  parsed.check([&option](const std::string& word) -> std::string {
    const auto& values = option.values();
    if (std::find(values.begin(), values.end(), word) != values.end()) return "";
    throw ConfigError(fmt::format("{} '{}' is not known.{} Choose from: {}", option.label(), word,
                                  did_you_mean(word, values), join(values, ", ")));
  });
}

CLI::Option* add_value_option(CLI::App& app, const Option& option) {
  CLI::Option* parsed = std::visit(
      [&](auto* target) { return app.add_option(option.names(), *target, option.description()); },
      option.target());
  const bool several = std::holds_alternative<std::vector<std::string>*>(option.target());
  if (several && !option.is_positional()) parsed->allow_extra_args(false);
  if (const auto& count = option.expected_count()) parsed->expected(count->first, count->second);
  if (option.is_required()) parsed->required();
  if (is_whole(option.target()) || std::holds_alternative<double*>(option.target())) {
    parsed->check([&option](const std::string& word) { return explain_number(option, word); });
  }
  if (!option.values().empty()) restrict_values(*parsed, option);
  return parsed;
}

void add_options(CLI::App& app, const Command& command) {
  app.set_help_flag();  // ours is an option like any other in the tree
  for (const Option* option : command.options()) {
    if (option->names() == "-h,--help") {
      app.set_help_flag(option->names(), option->description());
    } else if (option->names() == kVersionNames) {
      app.set_version_flag(option->names(), "");
    } else if (option->is_flag()) {
      app.add_flag(option->names(), *std::get<bool*>(option->target()), option->description())
          ->disable_flag_override();
    } else {
      add_value_option(app, *option);
    }
  }
  for (const auto& sub : command.all_subcommands()) {
    add_options(*app.add_subcommand(sub->name(), sub->text().summary), *sub);
  }
  // One command runs; a second name of a command is an argument of the first.
  app.require_subcommand(0, 1);
}

/// The innermost command that was named.
const Command& innermost(const CLI::App& app, const Command& root) {
  const Command* command = &root;
  const CLI::App* parsed = &app;
  for (auto named = parsed->get_subcommands(); !named.empty(); named = parsed->get_subcommands()) {
    parsed = named.front();
    command = command->find_subcommand(parsed->get_name());
  }
  return *command;
}

/// What to say about a word the parser could not place.
std::string explain_extra(const std::string& word, const Command& command) {
  std::vector<std::string> known;
  const bool negative_number =
      word.size() > 1 && word[0] == '-' && std::isdigit(static_cast<unsigned char>(word[1]));
  if (negative_number) return fmt::format("'{}' must be greater than zero", word);
  if (word.starts_with("-")) {
    for (const Option* option : command.options()) {
      for (const std::string& name : option->long_names()) known.push_back("--" + name);
    }
    return fmt::format("unknown option '{}'.{} See '{} --help'.", word, did_you_mean(word, known),
                       command.path());
  }
  for (const Command* sub : command.subcommands()) known.push_back(sub->name());
  return fmt::format("unknown {} '{}'.{} See '{} --help'.",
                     command.parent() == nullptr ? "command" : "argument", word,
                     did_you_mean(word, known), command.path());
}

/// What help calls the option that CLI11's message begins with ("--corpus is required", "PLACES:
/// ...").
std::string subject_of(const std::string& message, const Command& command) {
  std::string name = message.substr(0, message.find_first_of(": "));
  for (const Option* option : command.options()) {
    for (const std::string& part : split(option->names(), ',')) {
      if (part == name && option->is_positional()) return option->label();
    }
  }
  return name;
}

/// CLI11 leaves the dashes of a flag out.
std::string flag_name(const std::string& name) {
  return name.starts_with("-") ? name : (name.size() == 1 ? "-" : "--") + name;
}

/// CLI11's complaint in our words.
std::string own_words(const CLI::ParseError& error, const Command& command) {
  std::string message = error.what();
  const std::string subject = subject_of(message, command);
  if (message.ends_with("is required")) return subject + " is required";
  int most = 0, given = 0;
  const std::size_t numbers = message.find("At Most ");
  if (numbers != std::string::npos &&
      std::sscanf(message.c_str() + numbers, "At Most %d required but received %d", &most,
                  &given) == 2) {
    return most == 1 ? fmt::format("{} is given {} times; give it once", subject, given)
                     : fmt::format("{} takes at most {} words; {} are given", subject, most, given);
  }
  if (message.ends_with("flag override")) return flag_name(subject) + " takes no value";
  if (error.get_name() == "ArgumentMismatch") return subject + " needs a value";
  if (error.get_name() == "ConversionError") {
    return "a value cannot be read" + message.substr(message.find(':'));
  }
  return message;
}

/// CLI11 checks required values before left-over words, so a typo would be reported as a missing
/// argument. Left-over words are the likelier cause: look for them first.
std::string explain(const CLI::App& app, const Command& command, const CLI::ParseError& error) {
  const std::vector<std::string> extras = app.remaining(true);
  for (const std::string& word : extras) {
    if (word.starts_with("-") && word.size() > 1) return explain_extra(word, command);
  }
  if (!extras.empty()) return explain_extra(extras.front(), command);
  std::string message = own_words(error, command);
  std::replace(message.begin(), message.end(), '\n', ' ');
  return fmt::format("{}. See '{} --help'.", message, command.path());
}

}  // namespace

ParsedCommand parse(const Command& root, const std::vector<std::string>& arguments) {
  CLI::App app("", root.name());
  add_options(app, root);
  try {
    // CLI11 consumes a vector from its back.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    return {&innermost(app, root), Wish::help};
  } catch (const CLI::CallForVersion&) {
    return {&root, Wish::version};
  } catch (const CLI::ParseError& error) {
    throw ConfigError(explain(app, innermost(app, root), error));
  }
  return {&innermost(app, root), Wish::run};
}

}  // namespace fathom
