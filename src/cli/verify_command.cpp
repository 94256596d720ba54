// fathom verify: what of a study, a run, a token set or a model is intact.
#include <fmt/format.h>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/stop_signals.h"
#include "core/error.h"
#include "core/text.h"
#include "core/units.h"
#include "study/verify.h"

namespace fathom {
namespace {

struct Options {
  std::string folder;
  std::int64_t repeat = 0;
  bool json = false;
};

Json to_json(const Options& options, const study::Verification& found,
             const std::vector<study::Repetition>& repetitions) {
  Json document = json_document("verify");
  document["folder"] = options.folder;
  document["files"] = found.files;
  document["bytes"] = found.bytes;
  document["without_checksum"] = found.unguarded;
  document["damage"] = found.damage;
  document["repeated"] = Json::array();
  for (const study::Repetition& repetition : repetitions) {
    document["repeated"].push_back({{"id", repetition.id},
                                    {"equal", repetition.equal},
                                    {"difference", repetition.difference}});
  }
  return document;
}

void print_text(Session& session, const Options& options, const study::Verification& found,
                const std::vector<study::Repetition>& repetitions) {
  session.out << fmt::format(
      "{}  {}\n\n  {} files, {}, {} damaged{}\n", session.terminal.accent("fathom verify"),
      options.folder, found.files, format_bytes(static_cast<double>(found.bytes)),
      found.damage.size(),
      found.unguarded == 0
          ? ""
          : fmt::format("; {} of them without a checksum (older versions)", found.unguarded));
  for (const std::string& line : found.damage) {
    session.out << "  ! " << printable(line, 500) << "\n";
  }
  for (const study::Repetition& repetition : repetitions) {
    session.out << fmt::format("  {} trained again: {}\n", repetition.id,
                               repetition.equal ? "bit-identical" : repetition.difference);
  }
}

void run_verify(Session& session, const Options& options) {
  const study::Verification found = study::verify_folder(options.folder);
  std::vector<study::Repetition> repetitions;
  if (options.repeat > 0) {
    const StopSignals signals;
    repetitions = study::repeat_runs(options.folder, {options.repeat,
                                                      [&](const std::string& text) {
                                                        session.err << text << "\n" << std::flush;
                                                      },
                                                      [] { return StopSignals::came(); }});
  }
  if (options.json) {
    print_json(session, to_json(options, found, repetitions));
  } else {
    print_text(session, options, found, repetitions);
  }
  if (!found.damage.empty()) {
    throw DataError(
        fmt::format("{}: {} damaged; restore them, or run the study again: it sets them aside and "
                    "repeats what is missing",
                    options.folder, found.damage.size()));
  }
  for (const study::Repetition& repetition : repetitions) {
    if (!repetition.equal) throw DataError("a run that was trained again is not bit-identical");
  }
}

}  // namespace

void add_verify_command(CommandTree& tree) {
  auto options = std::make_shared<Options>();
  Command& command = tree.add(
      tree.root(), "verify",
      {"Check a study's files and report what is intact",
       "Reads every file of a study, a run, a token set or a model, checks it against its checksum "
       "and against the run it lies in, and lists what is damaged. With --retrain it also trains "
       "runs of a study again and compares every loss and weight bit for bit. Nothing is changed.",
       {{"verify my-study", "exit code 3 when something is damaged"},
        {"verify my-study --retrain 2", "and train two of its runs again"}}},
      [options](Session& session) { run_verify(session, *options); });
  command.add_option("DIR", options->folder, "A study, a run, a token set or a model")->required();
  command.add_option("--retrain", options->repeat, "Train this many finished runs again")
      ->check(Range{0, 100000})
      ->type_name("N");
  command.add_flag("--json", options->json, "Print JSON");
}

}  // namespace fathom
