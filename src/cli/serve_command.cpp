// fathom serve: the map, studies and labs as pages of this machine.
#include <chrono>
#include <filesystem>
#include <thread>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/plan_words.h"
#include "cli/stop_signals.h"
#include "core/error.h"
#include "serve/http_server.h"
#include "study/local_executor.h"

namespace fathom {
namespace {

namespace fs = std::filesystem;

constexpr int kDefaultPort = 8642;

struct ServeOptions {
  std::vector<std::string> folders;
  int port = kDefaultPort;
};

std::vector<fs::path> roots_of(const ServeOptions& options) {
  if (options.folders.empty()) return {"."};
  for (const std::string& folder : options.folders) {
    if (!fs::is_directory(folder)) throw DataError(folder + ": there is no such folder");
  }
  return {options.folders.begin(), options.folders.end()};
}

void run(Session& session, const ServeOptions& options) {
  const StopSignals signals;
  serve::Site site({.roots = roots_of(options),
                    .parse_plan = parse_plan_words,
                    .fit_command = {study::own_program().string(), "study", "findings"}});
  serve::HttpServer server(site, options.port);
  session.out << server.address() << "\n" << std::flush;
  session.err << "Press Ctrl-C to stop\n" << std::flush;
  while (!StopSignals::came()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  server.stop();
}

}  // namespace

void add_serve_command(CommandTree& tree) {
  auto options = std::make_shared<ServeOptions>();
  Command& command =
      tree.add(tree.root(), "serve",
               {"Follow studies in the browser, with the map and lab pages",
                "Listens on this machine only (127.0.0.1), prints the address and runs until "
                "Ctrl-C. The pages follow studies while they train: curves, running and waiting "
                "runs, time left, what is decided. Nothing can be changed from a page, run folders "
                "are only read, and fits run as processes of the lowest priority.",
                {{"serve", "studies in this folder, and the map"},
                 {"serve runs/quick runs/levine", "two studies"},
                 {"serve runs --port 0", "every study in runs/, on any free port"}}},
               [options](Session& session) { run(session, *options); });
  command.add_option(
      "DIR", options->folders,
      "Studies, lab directories, or folders of these and of probes (default: the current one)");
  command.add_option("--port", options->port, "Port to listen on, 0 for any (default 8642)")
      ->type_name("N")
      ->check({0, 65535});
}

}  // namespace fathom
