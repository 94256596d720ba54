#include "cli/command_line.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>
#include <system_error>

#include "cli/commands.h"
#include "cli/parse.h"
#include "cli/text_output.h"
#include "core/error.h"
#include "core/json_reader.h"
#include "core/text.h"
#include "terminal/descriptor_buffer.h"

namespace fathom {
namespace {

/// --help and --version are parsed like flags; their values are never read.
bool& ignored() {
  static bool value;
  return value;
}

}  // namespace

CommandTree::CommandTree()
    : root_("fathom",
            {"How deep and how wide should a transformer be?",
             "Fathom answers with evidence: published laws side by side, exact counts, proved "
             "bounds.",
             {{"plan 1.3B", "a shape for 1.3 billion parameters, its band and its cost"},
              {"plan --flops 1e22 --hardware h200", "for a compute budget, timed on an H200"},
              {"shape 96x12288 --heads 96", "count everything about GPT-3's shape"},
              {"bounds --layers 6 --width 1000 --heads 16", "what the theory proves about it"}}},
            nullptr, nullptr) {
  root_.add_flag("-h,--help", ignored(), "Show this help");
  root_.add_flag(kVersionNames, ignored(), "Show the version");
}

Command& CommandTree::add(Command& parent, const std::string& name, CommandText text,
                          std::function<void(Session&)> run) {
  parent.subcommands_.push_back(
      std::make_unique<Command>(name, std::move(text), std::move(run), &parent));
  Command& command = *parent.subcommands_.back();
  command.add_flag("-h,--help", ignored(), "Show this help");
  return command;
}

void CommandTree::restrict(Option* option, std::vector<std::string> values) {
  option->values_ = std::move(values);
}

void add_all_commands(CommandTree& tree) {
  add_plan_command(tree);
  add_shape_command(tree);
  add_compare_command(tree);
  add_bounds_command(tree);
  add_data_command(tree);
  add_rank_command(tree);
  add_train_command(tree);
  add_study_command(tree);
  add_lab_command(tree);
  add_probe_command(tree);
  add_serve_command(tree);
  add_bench_command(tree);
  add_doctor_command(tree);
  add_eval_command(tree);
  add_generate_command(tree);
  add_export_command(tree);
  add_import_command(tree);
  add_verify_command(tree);
  add_completion_command(tree);
  add_man_command(tree);
  add_help_command(tree);
}

int run_command_line(const std::vector<std::string>& arguments, Session& session) {
  const auto complain = [&](const std::string& message, int code) {
    session.err << "fathom: " << printable_lines(message) << "\n";
    return code;
  };
  try {
    CommandTree tree;
    add_all_commands(tree);
    const ParsedCommand parsed = parse(tree.root(), arguments);
    switch (parsed.wish) {
      case Wish::version:
        session.out << "fathom " << FATHOM_VERSION << "\n";
        break;
      case Wish::help:
        session.out << render_help(*parsed.command, session.terminal);
        break;
      case Wish::run:
        parsed.command->run(session);
        break;
    }
    return 0;
  } catch (const Error& error) {
    return complain(error.what(), error.exit_code());
  } catch (const std::filesystem::filesystem_error& error) {
    const std::string path = error.path1().string();
    return complain(fmt::format("{}: {}", path, error.code().message()), DataError("").exit_code());
  } catch (const nlohmann::json::exception& error) {
    return complain(fmt::format("a file has unexpected contents: {}", json_problem(error)),
                    DataError("").exit_code());
  } catch (const std::bad_alloc&) {
    return complain("not enough memory, on this machine or within the limit set for it (ulimit -v)",
                    DeviceError("").exit_code());
  } catch (const std::system_error& error) {  // no thread, no descriptor
    return complain(fmt::format("the operating system refused: {}", error.what()),
                    DeviceError("").exit_code());
  } catch (const std::exception& error) {
    return complain(fmt::format("internal error: {}", error.what()), 70);
  }
}

int run_program(const std::vector<std::string>& arguments, int output, std::ostream& err) {
  DescriptorBuffer buffer(output);
  std::ostream out(&buffer);
  Session session{out, err, detect_terminal(output)};
  const int code = run_command_line(arguments, session);
  const int cause = buffer.finish();
  if (cause == 0) return code;
  const DataError error(fmt::format("cannot write the result: {}", std::strerror(cause)));
  err << "fathom: " << error.what() << "\n";
  return code == 0 ? error.exit_code() : code;
}

}  // namespace fathom
