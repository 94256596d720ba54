// Shell completion scripts generated from the command tree.
//
// Each shell gets one flat table: for every command path its subcommands and options, and for
// options with listed values those values. Other values complete as file names.
#include <fmt/format.h>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "core/text.h"

namespace fathom {
namespace {

struct Node {
  std::string path;  // "fathom shape list"
  const CLI::App* command;
};

void collect(const CLI::App& command, const std::string& path, std::vector<Node>& nodes) {
  nodes.push_back({path, &command});
  for (const CLI::App* sub : subcommands(command)) {
    collect(*sub, path + " " + sub->get_name(), nodes);
  }
}

std::vector<Node> all_nodes(const CommandTree& tree) {
  std::vector<Node> nodes;
  collect(tree.root(), "fathom", nodes);
  return nodes;
}

std::vector<std::string> long_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : visible_options(command)) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// Single-quoted for any POSIX-like shell and for fish.
std::string quote(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

/// The common body of bash and zsh: walk the words, then offer the words of that command path.
std::string bash_function(const CommandTree& tree) {
  std::string words;
  std::string values;
  std::string paths;
  for (const Node& node : all_nodes(tree)) {
    std::vector<std::string> offered;
    for (const CLI::App* sub : subcommands(*node.command)) offered.push_back(sub->get_name());
    for (const std::string& name : long_names(*node.command)) offered.push_back(name);
    for (const CLI::Option* option : visible_options(*node.command)) {
      if (tree.values(*option).empty()) continue;
      if (option->get_positional()) {
        offered.insert(offered.end(), tree.values(*option).begin(), tree.values(*option).end());
        continue;
      }
      values += fmt::format("    {}) words={} ;;\n",
                            quote(node.path + " --" + option->get_lnames().front()),
                            quote(join(tree.values(*option), " ")));
    }
    paths += fmt::format("      {}) path=\"$path $word\" ;;\n", quote(node.path));
    words += fmt::format("      {}) words={} ;;\n", quote(node.path), quote(join(offered, " ")));
  }
  return fmt::format(R"(_fathom() {{
  local path=fathom word words='' i
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="${{COMP_WORDS[i]}}"
    case "$path $word" in
{}    esac
  done
  case "$path $previous" in
{}    *) case "$path" in
{}    esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
)",
                     paths, values, words);
}

std::string bash_script(const CommandTree& tree) {
  return "# bash completion for fathom:  source <(fathom completion bash)\n" + bash_function(tree) +
         "complete -o default -F _fathom fathom\n";
}

std::string zsh_script(const CommandTree& tree) {
  return "#compdef fathom\n# zsh completion for fathom:  source <(fathom completion zsh)\n"
         "autoload -U +X bashcompinit && bashcompinit\n" +
         bash_function(tree) + "complete -o default -F _fathom fathom\n";
}

/// fish asks per option: -n condition on the subcommand path, -l name, -a values, -d description.
std::string fish_script(const CommandTree& tree) {
  std::string script = "# fish completion for fathom:  fathom completion fish | source\n";
  for (const Node& node : all_nodes(tree)) {
    std::vector<std::string> path = split(node.path, ' ');
    path.erase(path.begin());
    std::string condition = path.empty() ? "__fish_use_subcommand" : "";
    for (const std::string& part : path) {
      condition += (condition.empty() ? "" : "; and ") + ("__fish_seen_subcommand_from " + part);
    }
    for (const CLI::App* sub : subcommands(*node.command)) {
      script += fmt::format("complete -c fathom -n {} -a {} -d {}\n", quote(condition),
                            quote(sub->get_name()), quote(tree.text(*sub).summary));
    }
    for (const CLI::Option* option : visible_options(*node.command)) {
      const std::string values = join(tree.values(*option), " ");
      std::string line = fmt::format("complete -c fathom -n {}", quote(condition));
      if (option->get_positional()) {
        if (values.empty()) continue;
        script += line + fmt::format(" -f -a {}\n", quote(values));
        continue;
      }
      for (const std::string& name : option->get_lnames()) line += " -l " + name;
      for (const std::string& name : option->get_snames()) line += " -s " + name;
      if (option->get_expected_max() > 0)
        line += values.empty() ? " -r" : " -x -a " + quote(values);
      script += line + " -d " + quote(option->get_description()) + "\n";
    }
  }
  return script;
}

}  // namespace

std::string render_completion(const CommandTree& tree, const std::string& shell) {
  if (shell == "bash") return bash_script(tree);
  if (shell == "zsh") return zsh_script(tree);
  return fish_script(tree);
}

void add_completion_command(CommandTree& tree) {
  auto shell = std::make_shared<std::string>();
  CLI::App& command = tree.add(
      tree.root(), "completion",
      {"Print a shell completion script",
       "",
       {{"completion bash > ~/.local/share/bash-completion/completions/fathom", "bash"},
        {"completion fish > ~/.config/fish/completions/fathom.fish", "fish"}}},
      [&tree, shell](Session& session) { session.out << render_completion(tree, *shell); });
  tree.restrict(command.add_option("SHELL", *shell, "Which shell")->required(),
                {"bash", "zsh", "fish"});
}

}  // namespace fathom
