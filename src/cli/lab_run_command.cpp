// fathom lab run: one subcommand per claim, with the options of its experiment, `all` and
// `trained`.
#include <fmt/format.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <thread>

#include "cli/json_output.h"
#include "cli/lab_commands.h"
#include "cli/slurm_options.h"
#include "cli/stop_signals.h"
#include "cli/study_progress.h"
#include "core/error.h"
#include "core/folders.h"
#include "core/text.h"
#include "core/units.h"
#include "lab/frame/claim.h"
#include "lab/frame/result_json.h"
#include "lab/trained/slurm_training.h"
#include "study/local_executor.h"
#include "terminal/progress.h"

namespace fathom {
namespace {

struct LabRunOptions {
  std::vector<std::string> ids;
  std::vector<std::string> more;                          // further claims on the command line
  std::map<std::string, std::vector<std::string>> texts;  // empty: not given
  std::map<std::string, bool> flags;
  std::string seeds, device = "cpu", out;
  ExecutorChoice choice;
  std::uint64_t threads = 0;
  double time_limit = 600;
  bool quick = false;
  bool json = false;
};

std::vector<lab::GivenOption> given_options(const LabRunOptions& options) {
  std::vector<lab::GivenOption> given;
  for (const auto& [name, texts] : options.texts) {
    if (!texts.empty()) given.push_back({name, texts.back()});
  }
  for (const auto& [name, set] : options.flags) {
    if (set) given.push_back({name, "true"});
  }
  if (!options.seeds.empty()) given.push_back({"seeds", options.seeds});
  return given;
}

std::vector<lab::Setup> setups_of(const LabRunOptions& options,
                                  const std::vector<std::string>& ids) {
  const auto given = given_options(options);
  const bool several = ids.size() > 1;
  for (const lab::GivenOption& each : given) {
    if (several && each.name != "seeds") {
      throw ConfigError(fmt::format("--{} belongs to {} alone; run the claims one by one",
                                    each.name, ids.front()));
    }
  }
  std::vector<lab::Setup> setups;
  for (const std::string& id : ids) {
    lab::Setup setup = lab::resolve_setup(lab::find_experiment(id), given, options.quick, several);
    setup.device = {options.device == "cuda" ? engine::DeviceKind::cuda : engine::DeviceKind::cpu};
    setup.threads =
        options.threads != 0 ? options.threads : std::max(1u, std::thread::hardware_concurrency());
    setup.time_limit = options.time_limit;
    setup.remote = options.choice.is_slurm();
    setups.push_back(std::move(setup));
  }
  return setups;
}

/// Where the runs of trained claims live: a temporary folder where they are not kept.
class RunsFolder {
 public:
  explicit RunsFolder(const std::string& kept) : path_(kept), kept_(!kept.empty()) {
    if (kept_) return;
    path_ = make_temporary_folder("fathom-lab");
  }
  ~RunsFolder() {
    std::error_code ignored;
    if (!kept_) std::filesystem::remove_all(path_, ignored);
  }
  RunsFolder(const RunsFolder&) = delete;
  RunsFolder& operator=(const RunsFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  bool kept_;
};

std::vector<std::string> claims_of(const LabRunOptions& options) {
  std::vector<std::string> ids = options.ids;
  for (const std::string& id : options.more) {
    lab::find_claim(id);
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }
  return ids;
}

/// Has Slurm train the runs of a claim; its parts then find their records.
void train_elsewhere(Session& session, const std::string& id, const lab::Setup& setup,
                     const lab::LabRecords& records, study::SlurmOptions slurm) {
  StudyProgress progress(session);
  study::ExecutorEvents events = progress.events();
  events.stop = [] { return StopSignals::came(); };
  slurm.program = study::own_program();
  train_on_slurm(setup, lab::find_experiment(id).plan(setup), records, slurm, events);
  progress.finish();
}

lab::LabResult run_one(const std::string& id, const lab::Setup& setup, lab::LabRecords* records,
                       ProgressLine& line, const std::string& place) {
  lab::RunEvents events;
  events.stop = [] { return StopSignals::came(); };
  events.progress = [&](double share) { line.update(place + id, share); };
  return lab::run_claim(lab::find_claim(id), setup, setup.threads, records, events);
}

void print_json_results(Session& session, const std::vector<lab::LabResult>& results,
                        bool several) {
  if (!several) {
    return print_json(session, lab::result_json(results.front()));
  }
  Json document = json_document("lab_run");
  double seconds = 0;
  document["results"] = Json::array();
  for (const lab::LabResult& result : results) {
    document["results"].push_back(lab::result_json(result));
    seconds += result.seconds;
  }
  document["seconds"] = seconds;
  print_json(session, document);
}

/// Which of the options shared by many claims some of the given claims take.
struct Taken {
  bool seeds = false, device = false, executor = false;

  void add(const std::string& id) {
    const lab::Experiment& experiment = lab::find_experiment(id);
    const bool trains = lab::find_claim(id).kind == lab::Kind::trained;
    seeds |= experiment.has_option("seeds");
    device |= experiment.on_engine || trains;
    executor |= trains;
  }
};

void refuse_what_nothing_takes(const LabRunOptions& options, const std::vector<std::string>& ids) {
  Taken taken;
  for (const std::string& id : ids) taken.add(id);
  const std::string claims = join(ids, ", ");
  if (!options.seeds.empty() && !taken.seeds) {
    throw ConfigError(fmt::format("--seeds does not apply to {}: nothing is random there", claims));
  }
  if (options.device != "cpu" && !taken.device) {
    throw ConfigError(fmt::format("--device {} does not apply to {}: it computes on the CPU",
                                  options.device, claims));
  }
  if (options.choice.is_slurm() && !taken.executor) {
    throw ConfigError(
        fmt::format("--executor slurm does not apply to {}: nothing is trained", claims));
  }
}

void run_lab(Session& session, const LabRunOptions& options, bool all) {
  const std::vector<std::string> ids = claims_of(options);
  refuse_what_nothing_takes(options, ids);
  if (options.choice.is_slurm() && options.out.empty()) {
    throw ConfigError("--executor slurm needs --out DIR, a directory that the nodes can reach too");
  }
  std::vector<lab::Setup> setups = setups_of(options, ids);
  // Whatever can be refused is refused before any work and before a directory is made.
  for (std::size_t i = 0; i < ids.size(); ++i) lab::find_experiment(ids[i]).plan(setups[i]);
  const StopSignals signals;
  std::unique_ptr<lab::LabRecords> records;
  if (!options.out.empty()) records = std::make_unique<lab::LabRecords>(options.out);
  const RunsFolder runs(options.out);
  for (lab::Setup& setup : setups) {
    setup.folder = std::filesystem::absolute(runs.path());
    if (options.device == "cuda") setup.program = study::own_program();
  }
  ProgressLine line(session.err, is_live_error_stream(session.err));
  std::vector<lab::LabResult> results;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::string place = ids.size() == 1 ? "" : fmt::format("{} of {}  ", i + 1, ids.size());
    if (options.choice.is_slurm()) {
      train_elsewhere(session, ids[i], setups[i], *records, options.choice.slurm);
    }
    results.push_back(run_one(ids[i], setups[i], records.get(), line, place));
    if (!options.json && ids.size() > 1) {
      line.note(fmt::format("{}: {}, {}", ids[i], to_string(results.back().judgement.verdict),
                            format_seconds(results.back().seconds)));
    }
  }
  line.clear();
  if (options.json) return print_json_results(session, results, all || ids.size() > 1);
  session.out << (results.size() == 1 && !all ? render_lab_result(results.front(), session.terminal)
                                              : render_lab_summary(results, session.terminal));
  if (!options.out.empty()) {
    session.out << fmt::format("\n  kept in {0}; 'fathom lab report {0}' makes a page of it\n",
                               options.out);
  }
}

/// Help shows what the claims take. The rest is parsed, too: further claims may take it.
void add_common_options(CommandTree& tree, Command& command, LabRunOptions& options) {
  Taken taken;
  for (const std::string& id : options.ids) taken.add(id);
  command.add_flag("--quick", options.quick, "Fewer seeds and sizes: seconds instead of minutes");
  Option* seeds =
      command.add_option("--seeds", options.seeds, "Random draws, for experiments that have any")
          ->type_name("N");
  if (!taken.seeds) seeds->hide();
  Option* device = command
                       .add_option("--device", options.device,
                                   "Where experiments on the engine run (default cpu)")
                       ->type_name("NAME");
  tree.restrict(device, {"cpu", "cuda"});
  if (!taken.device) device->hide();
  command.add_option("--threads", options.threads, "Parts computed at once (default: all cores)")
      ->type_name("N")
      ->check(Range{1, 1024});
  command
      .add_option("--time-limit", options.time_limit,
                  "Refuse experiments estimated to take longer (default 600 s)")
      ->type_name("SECONDS")
      ->check(Range{1, 1e9});
  command
      .add_option("--out", options.out,
                  "Directory for records; the same command continues from them")
      ->type_name("DIR");
  options.choice.add_options(tree, command, /*shown=*/taken.executor);
  command.add_flag("--json", options.json, "Print JSON");
}

void add_own_option(CommandTree& tree, Command& command, LabRunOptions& options,
                    const lab::Option& option) {
  if (option.name == "seeds") return;
  const std::string flag = "--" + option.name;
  if (option.type == lab::Option::Type::flag) {
    command.add_flag(flag, options.flags[option.name], option.help);
    return;
  }
  std::string help = option.help;
  const std::string value =
      option.value.is_string() ? option.value.get<std::string>() : option.value.dump();
  if (!value.empty() && value != "null") help += fmt::format(" (default {})", value);
  Option* added = command.add_option(flag, options.texts[option.name], help);
  added->type_name(option.placeholder);
  if (!option.words.empty()) tree.restrict(added, option.words);
}

void add_claim_run(CommandTree& tree, Command& run, const lab::Claim& claim) {
  auto options = std::make_shared<LabRunOptions>();
  options->ids = {claim.id};
  std::vector<Example> examples{{"lab run " + claim.id, "the full experiment"},
                                {"lab run " + claim.id + " --quick --json", "less of it, as JSON"}};
  if (!claim.ask.empty()) {
    examples.push_back({"lab run " + claim.id + " " + claim.ask, "a question of your own"});
  }
  Command& command =
      tree.add(run, claim.id,
               {claim.title, claim.statement + " Experiment: " + claim.experiment + ".", examples},
               [options](Session& session) { run_lab(session, *options, false); });
  command.add_option("MORE", options->more, "Further claims to run");
  for (const lab::Option& option : lab::find_experiment(claim.id).options) {
    add_own_option(tree, command, *options, option);
  }
  add_common_options(tree, command, *options);
}

}  // namespace

void add_lab_run(CommandTree& tree, Command& lab_command) {
  Command& run =
      tree.add(lab_command, "run",
               {"Run the experiment of a claim, of several, or of all",
                "Without options the claim's own experiment runs and its criteria give the "
                "verdict. With an option of the experiment it answers your own question instead: "
                "it runs that one set-up, judged by the criteria that apply to it. With --out "
                "finished parts are kept, and a stopped run continues where it left off.",
                {{"lab run rank-collapse", "one claim"},
                 {"lab run rank-collapse --tokens 32 --mask causal --json", "a set-up of your own"},
                 {"lab run k-hop admin --quick", "two claims, quickly"},
                 {"lab run all --quick --out my-lab", "all of them, kept"},
                 {"lab run rank-collapse --help", "the options of one experiment"}}},
               nullptr);
  const auto add_group = [&](const char* name, bool trained, CommandText documentation) {
    auto options = std::make_shared<LabRunOptions>();
    options->ids = lab::claim_ids(trained);
    Command& command = tree.add(run, name, std::move(documentation),
                                [options](Session& session) { run_lab(session, *options, true); });
    add_common_options(tree, command, *options);
  };
  add_group("all", false,
            {"Run every claim that needs no training",
             "Every claim in the order of 'fathom lab list', except those that train models.",
             {{"lab run all --quick", "verdicts in minutes"},
              {"lab run all --out my-lab", "the full experiments, kept"}}});
  add_group("trained", true,
            {"Run every claim that needs training",
             "Each is a study of small models. On a CPU only --quick is a matter of minutes, and "
             "it says where it cannot decide; the full experiments are for a GPU.",
             {{"lab run trained --quick --out my-lab", "small versions on the CPU"},
              {"lab run trained --device cuda --out my-lab", "the full experiments"}}});
  for (const lab::Claim& claim : lab::claims()) add_claim_run(tree, run, claim);
}

}  // namespace fathom
