// Shell completion scripts generated from the command tree.
//
// Each shell gets one flat table: for every command path its subcommands and options, and for
// options with listed or suggested values (laws, hardware, presets, models) those values. Other
// values complete as file names.
#include <fmt/format.h>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "core/text.h"

namespace fathom {
namespace {

/// A command and all below it, outermost first.
void collect(const Command& command, std::vector<const Command*>& commands) {
  commands.push_back(&command);
  for (const Command* sub : command.subcommands()) collect(*sub, commands);
}

std::vector<const Command*> all_commands(const Command& root) {
  std::vector<const Command*> commands;
  collect(root, commands);
  return commands;
}

/// Single-quoted for any POSIX-like shell and for fish.
std::string quote(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::vector<std::string> dashed_names(const Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.long_names()) names.push_back("--" + name);
  for (const std::string& name : option.short_names()) names.push_back("-" + name);
  return names;
}

/// The common body of bash and zsh: walk the words, then offer the words of that command path.
std::string bash_function(const Command& root) {
  std::string words;
  std::string values;
  std::string paths;
  for (const Command* command : all_commands(root)) {
    std::vector<std::string> offered;
    for (const Command* sub : command->subcommands()) offered.push_back(sub->name());
    for (const Option* option : command->shown_options()) {
      for (const std::string& name : option->long_names()) offered.push_back("--" + name);
    }
    for (const Option* option : command->shown_options()) {
      const std::vector<std::string>& words_of = option->completions();
      if (option->is_positional()) offered.insert(offered.end(), words_of.begin(), words_of.end());
      if (option->is_flag()) continue;
      for (const std::string& name : dashed_names(*option)) {
        values += fmt::format("    {}) words={} ;;\n", quote(command->path() + " " + name),
                              quote(join(words_of, " ")));
      }
    }
    paths += fmt::format("      {}) place=\"$place $word\" ;;\n", quote(command->path()));
    words +=
        fmt::format("      {}) words={} ;;\n", quote(command->path()), quote(join(offered, " ")));
  }
  // Not "path": zsh ties it to PATH.
  return fmt::format(R"(_fathom() {{
  local place=fathom word words='' i
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="${{COMP_WORDS[i]}}"
    case "$place $word" in
{}    esac
  done
  case "$place $previous" in
{}    *) case "$place" in
{}    esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
)",
                     paths, values, words);
}

std::string bash_script(const Command& root) {
  return "# bash completion for fathom:  source <(fathom completion bash)\n" + bash_function(root) +
         "complete -o default -F _fathom fathom\n";
}

std::string zsh_script(const Command& root) {
  return "#compdef fathom\n# zsh completion for fathom:  source <(fathom completion zsh)\n"
         "autoload -U +X bashcompinit && bashcompinit\n" +
         bash_function(root) +
         "complete -o default -F _fathom fathom\n"
         // When autoloaded, this file is the function called first: it must answer that call too.
         "[[ ${funcstack[1]} == _fathom ]] && _bash_complete -o default -F _fathom\n";
}

/// fish asks per option: -n condition on the subcommand path, -l name, -a values, -d description.
std::string fish_script(const Command& root) {
  std::string script = "# fish completion for fathom:  fathom completion fish | source\n";
  for (const Command* command : all_commands(root)) {
    std::vector<std::string> path = split(command->path(), ' ');
    path.erase(path.begin());
    std::string condition = path.empty() ? "__fish_use_subcommand" : "";
    for (const std::string& part : path) {
      condition += (condition.empty() ? "" : "; and ") + ("__fish_seen_subcommand_from " + part);
    }
    for (const Command* sub : command->subcommands()) {
      script += fmt::format("complete -c fathom -n {} -a {} -d {}\n", quote(condition),
                            quote(sub->name()), quote(sub->text().summary));
    }
    for (const Option* option : command->shown_options()) {
      const std::string values = join(option->completions(), " ");
      std::string line = fmt::format("complete -c fathom -n {}", quote(condition));
      if (option->is_positional()) {
        if (values.empty()) continue;
        script += line + fmt::format(" -f -a {}\n", quote(values));
        continue;
      }
      for (const std::string& name : option->long_names()) line += " -l " + name;
      for (const std::string& name : option->short_names()) line += " -s " + name;
      if (!option->is_flag()) line += values.empty() ? " -r" : " -r -a " + quote(values);
      script += line + " -d " + quote(option->description()) + "\n";
    }
  }
  return script;
}

}  // namespace

std::string render_completion(const Command& root, const std::string& shell) {
  if (shell == "bash") return bash_script(root);
  if (shell == "zsh") return zsh_script(root);
  return fish_script(root);
}

void add_completion_command(CommandTree& tree) {
  auto shell = std::make_shared<std::string>();
  Command& command = tree.add(
      tree.root(), "completion",
      {"Print a shell completion script",
       "",
       {{"completion bash > ~/.local/share/bash-completion/completions/fathom", "bash"},
        {"completion fish > ~/.config/fish/completions/fathom.fish", "fish"}}},
      [&tree, shell](Session& session) { session.out << render_completion(tree.root(), *shell); });
  tree.restrict(command.add_option("SHELL", *shell, "Which shell")->required(),
                {"bash", "zsh", "fish"});
}

}  // namespace fathom
