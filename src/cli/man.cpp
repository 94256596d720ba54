// Man pages from the same command tree as --help, in roff(7) with the man macros.
#include <fmt/format.h>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/usage.h"
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

/// "fathom-shape-list".
std::string page_name(const Command& command) {
  return command.parent() == nullptr ? command.name()
                                     : page_name(*command.parent()) + "-" + command.name();
}

void write_pages(const Command& command, const std::filesystem::path& folder, std::ostream& out) {
  const auto file = folder / (page_name(command) + ".1");
  write_file_atomically(file, render_man_page(command));
  out << file.string() << "\n";
  for (const Command* sub : command.subcommands()) write_pages(*sub, folder, out);
}

}  // namespace

std::string render_man_page(const Command& command) {
  const CommandText& about = command.text();
  const std::string name = page_name(command);
  std::string upper = name;
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));

  std::string page =
      fmt::format(".TH {} 1 \"\" \"fathom {}\" \"Fathom manual\"\n", roff(upper), FATHOM_VERSION);
  page += fmt::format(".SH NAME\n{} \\- {}\n", roff(name), roff(about.summary));
  page += fmt::format(".SH SYNOPSIS\n\\fB{}\\fR{}\n", roff(command.path()),
                      roff(usage_line(command).substr(command.path().size())));
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
  if (!command.subcommands().empty()) page += ".SH COMMANDS\n";
  for (const Command* sub : command.subcommands()) {
    page += fmt::format(".TP\n.B {}\n{}, see \\fB{}\\fR(1)\n", roff(sub->name()),
                        roff(sub->text().summary), roff(page_name(*sub)));
  }
  page += ".SH OPTIONS\n";
  for (const Option* option : command.shown_options()) {
    page += fmt::format(".TP\n.B {}\n{}\n", roff(option->label()), roff(option->meaning()));
  }
  page += fmt::format(".SH EXIT STATUS\n{}.\n", kExitCodes);
  return page;
}

void add_man_command(CommandTree& tree) {
  auto folder = std::make_shared<std::string>();
  Command& command =
      tree.add(tree.root(), "man",
               {"Write the manual pages",
                "Writes one page per command into a folder, from the same text as --help.",
                {{"man ~/.local/share/man/man1", "install the pages for this user"},
                 {"man . && man ./fathom-plan.1", "read one right away"}}},
               [&tree, folder](Session& session) {
                 std::error_code error;
                 std::filesystem::create_directories(*folder, error);
                 if (!std::filesystem::is_directory(*folder)) {
                   throw DataError(fmt::format("{}: cannot create this folder", *folder));
                 }
                 write_pages(tree.root(), *folder, session.out);
               });
  command.add_option("FOLDER", *folder, "Where the pages go")->required();
}

}  // namespace fathom
