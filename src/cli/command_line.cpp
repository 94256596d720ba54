#include "cli/command_line.h"

#include <fmt/format.h>

#include <cctype>

#include "cli/commands.h"
#include "core/error.h"
#include "core/text.h"

namespace fathom {
namespace {

/// All parsed commands from the root to the innermost.
const CLI::App* innermost(const CLI::App& root) {
  const CLI::App* command = &root;
  for (auto parsed = command->get_subcommands(); !parsed.empty();
       parsed = command->get_subcommands()) {
    command = parsed.front();
  }
  return command;
}

std::string command_path(const CLI::App& command) {
  std::string path = command.get_name();
  for (const CLI::App* up = command.get_parent(); up != nullptr; up = up->get_parent()) {
    path = up->get_name() + " " + path;
  }
  return path;
}

/// What to say about a word the parser could not place.
std::string explain_extra(const std::string& word, const CLI::App& command) {
  std::vector<std::string> known;
  const bool negative_number =
      word.size() > 1 && word[0] == '-' && std::isdigit(static_cast<unsigned char>(word[1]));
  if (negative_number) return fmt::format("'{}' must be greater than zero", word);
  if (word.starts_with("-")) {
    for (const CLI::Option* option : visible_options(command)) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
    return fmt::format("unknown option '{}'.{} See '{} --help'.", word, did_you_mean(word, known),
                       command_path(command));
  }
  for (const CLI::App* sub : subcommands(command)) known.push_back(sub->get_name());
  return fmt::format("unknown {} '{}'.{} See '{} --help'.",
                     command.get_parent() == nullptr ? "command" : "argument", word,
                     did_you_mean(word, known), command_path(command));
}

/// CLI11 checks required values before left-over words, so a typo would be reported as a missing
/// argument. Left-over words are the likelier cause: look for them first.
std::string explain_parse_error(const CLI::App& root, const CLI::ParseError& error) {
  const CLI::App& command = *innermost(root);
  std::vector<std::string> extras = root.remaining(true);
  for (const std::string& word : extras) {
    if (word.starts_with("-") && word.size() > 1) return explain_extra(word, command);
  }
  if (!extras.empty()) return explain_extra(extras.front(), command);
  std::string message = error.what();
  for (char& c : message) {
    if (c == '\n') c = ' ';
  }
  return fmt::format("{}. See '{} --help'.", message, command_path(command));
}

void add_all_commands(CommandTree& tree) {
  add_plan_command(tree);
  add_shape_command(tree);
  add_bounds_command(tree);
  add_data_command(tree);
  add_rank_command(tree);
  add_train_command(tree);
  add_study_command(tree);
  add_lab_command(tree);
  add_bench_command(tree);
  add_doctor_command(tree);
  add_eval_command(tree);
  add_generate_command(tree);
  add_export_command(tree);
  add_import_command(tree);
  add_completion_command(tree);
  add_man_command(tree);
}

}  // namespace

CommandTree::CommandTree() : root_("", "fathom") {
  root_.set_help_flag("-h,--help", "Show this help");
  root_.set_version_flag("--version", FATHOM_VERSION, "Show the version");
  entries_[&root_] = {
      {"How deep and how wide should a transformer be?",
       "Fathom answers with evidence: published laws side by side, exact counts, proved bounds.",
       {{"plan 1.3B", "a shape for 1.3 billion parameters, its band and its cost"},
        {"plan --flops 1e22 --hardware h200", "for a compute budget, timed on an H200"},
        {"shape 96x12288 --heads 96", "count everything about GPT-3's shape"},
        {"bounds --layers 6 --width 1000 --heads 16", "what the theory proves about it"}}},
      nullptr};
}

CLI::App& CommandTree::add(CLI::App& parent, const std::string& name, CommandText text,
                           std::function<void(Session&)> run) {
  CLI::App* command = parent.add_subcommand(name, text.summary);
  command->set_help_flag("-h,--help", "Show this help");
  entries_[command] = {std::move(text), std::move(run)};
  return *command;
}

void CommandTree::restrict(CLI::Option* option, std::vector<std::string> values) {
  values_[option] = values;
  option->check([option, values](const std::string& word) -> std::string {
    if (std::find(values.begin(), values.end(), word) != values.end()) return "";
    throw ConfigError(fmt::format("{} '{}' is not known.{} Choose from: {}", option_label(*option),
                                  word, did_you_mean(word, values), join(values, ", ")));
  });
}

const std::vector<std::string>& CommandTree::values(const CLI::Option& option) const {
  static const std::vector<std::string> none;
  const auto found = values_.find(&option);
  return found == values_.end() ? none : found->second;
}

void CommandTree::run(const CLI::App& command, Session& session) const {
  const auto& run = entries_.at(&command).run;
  if (run) {
    run(session);
  } else {
    session.out << render_help(*this, command, session.terminal);
  }
}

std::vector<const CLI::Option*> visible_options(const CLI::App& command) {
  std::vector<const CLI::Option*> positionals;
  std::vector<const CLI::Option*> flags;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;
    (option->get_positional() ? positionals : flags).push_back(option);
  }
  positionals.insert(positionals.end(), flags.begin(), flags.end());
  return positionals;
}

std::vector<const CLI::App*> subcommands(const CLI::App& command) {
  std::vector<const CLI::App*> visible;
  for (const CLI::App* sub : command.get_subcommands({})) {
    if (!sub->get_group().empty()) visible.push_back(sub);
  }
  return visible;
}

std::string option_label(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name();
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return join(names, ", ");
}

int run_command_line(const std::vector<std::string>& arguments, Session& session) {
  const auto complain = [&](const std::string& message, int code) {
    session.err << "fathom: " << message << "\n";
    return code;
  };
  CommandTree tree;
  add_all_commands(tree);
  try {
    try {
      // CLI11 consumes a vector from its back.
      tree.root().parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    } catch (const CLI::CallForHelp&) {
      session.out << render_help(tree, *innermost(tree.root()), session.terminal);
      return 0;
    } catch (const CLI::CallForVersion&) {
      session.out << "fathom " << FATHOM_VERSION << "\n";
      return 0;
    } catch (const CLI::ParseError& error) {
      return complain(explain_parse_error(tree.root(), error), 2);
    }
    tree.run(*innermost(tree.root()), session);
    return 0;
  } catch (const Error& error) {
    return complain(error.what(), error.exit_code());
  } catch (const std::exception& error) {
    return complain(fmt::format("internal error: {}", error.what()), 70);
  }
}

}  // namespace fathom
