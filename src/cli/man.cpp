// Man pages from the same command tree as --help, in roff(7) with the man macros.
#include <fmt/format.h>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "core/error.h"
#include "core/files.h"
#include "core/text.h"

namespace fathom {
namespace {

std::string roff(std::string_view text) {
  std::string escaped;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
    line_start = c == '\n';
  }
  return escaped;
}

std::string page_name(const CLI::App& command) {
  return command.get_parent() == nullptr
             ? command.get_name()
             : page_name(*command.get_parent()) + "-" + command.get_name();
}

void write_pages(const CommandTree& tree, const CLI::App& command,
                 const std::filesystem::path& folder, std::ostream& out) {
  const auto file = folder / (page_name(command) + ".1");
  write_file_atomically(file, render_man_page(tree, command));
  out << file.string() << "\n";
  for (const CLI::App* sub : subcommands(command)) write_pages(tree, *sub, folder, out);
}

}  // namespace

std::string render_man_page(const CommandTree& tree, const CLI::App& command) {
  const CommandText& about = tree.text(command);
  const std::string name = page_name(command);
  std::string upper = name;
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));

  std::string page =
      fmt::format(".TH {} 1 \"\" \"fathom {}\" \"Fathom manual\"\n", roff(upper), FATHOM_VERSION);
  page += fmt::format(".SH NAME\n{} \\- {}\n", roff(name), roff(about.summary));
  page +=
      fmt::format(".SH SYNOPSIS\n.B {}\n[\\fIOPTIONS\\fR]\n", roff(join(split(name, '-'), " ")));
  if (!about.examples.empty()) page += ".SH EXAMPLES\n";
  for (const Example& example : about.examples) {
    page += fmt::format(".TP\n.B fathom {}\n{}\n", roff(example.command), roff(example.meaning));
  }
  if (!about.description.empty()) {
    page += ".SH DESCRIPTION\n";
    for (const std::string& paragraph : split(about.description, '\n')) {
      page += paragraph.empty() ? ".PP\n" : roff(paragraph) + "\n";
    }
  }
  if (!subcommands(command).empty()) page += ".SH COMMANDS\n";
  for (const CLI::App* sub : subcommands(command)) {
    page += fmt::format(".TP\n.B {}\n{}, see \\fB{}\\fR(1)\n", roff(sub->get_name()),
                        roff(tree.text(*sub).summary), roff(page_name(*sub)));
  }
  page += ".SH OPTIONS\n";
  for (const CLI::Option* option : visible_options(command)) {
    page +=
        fmt::format(".TP\n.B {}\n{}", roff(option_label(*option)), roff(option->get_description()));
    if (!tree.values(*option).empty()) {
      page += fmt::format(" ({})", roff(join(tree.values(*option), " | ")));
    }
    page += "\n";
  }
  page += ".SH EXIT STATUS\n0 done, 2 wrong request, 3 bad data, 4 no device, 70 a bug.\n";
  return page;
}

void add_man_command(CommandTree& tree) {
  auto folder = std::make_shared<std::string>();
  CLI::App& command =
      tree.add(tree.root(), "man",
               {"Write the manual pages",
                "Writes one page per command into a folder, from the same text as --help.",
                {{"man ~/.local/share/man/man1", "install the pages for this user"},
                 {"man . && man ./fathom-plan.1", "read one at once"}}},
               [&tree, folder](Session& session) {
                 std::error_code error;
                 std::filesystem::create_directories(*folder, error);
                 if (!std::filesystem::is_directory(*folder)) {
                   throw DataError(fmt::format("{}: cannot make this folder", *folder));
                 }
                 write_pages(tree, tree.root(), *folder, session.out);
               });
  command.add_option("FOLDER", *folder, "Where the pages go")->required();
}

}  // namespace fathom
