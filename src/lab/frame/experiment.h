// An experiment: its options, the parts of work they call for, and what the parts' results say.
//
//   options -> plan -> parts -> records -> conclusion -> verdict -> page
//
// plan() refuses, before any work, what is meaningless or would not fit in memory or time. A part
// is small enough to lose, and its key names everything that decides its result, so a run stopped
// at any moment resumes where it was. conclude() sees only results: it would say the same from
// records. A trained claim plans one part per run: its key is that of the run's spec
// (training_key), and computing it means training the run until its record is written; conclude()
// then reads records like any other result.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/interval.h"
#include "engine/device.h"
#include "lab/frame/exhibit.h"

namespace fathom::study {
struct PlannedRun;
}

namespace fathom::lab {

using Json = nlohmann::ordered_json;

struct Option {
  enum class Type : std::uint8_t { integer, number, text, flag };

  std::string name;  // "tokens" for --tokens
  Type type = Type::integer;
  Json value;  // default
  Json quick;  // default of --quick; null: the same
  std::string placeholder;
  std::string help;
  double low = 0;  // range of integers and numbers
  double high = 0;
  std::vector<std::string> words = {};  // what a text may be; empty: anything
  bool setup = true;                    // giving it makes a custom set-up
};

/// The options of one run, resolved.
struct Setup {
  Json values = Json::object();
  bool quick = false;
  bool own = false;  // some set-up option was given: one set-up instead of the claim's list
  engine::Device device;
  std::size_t threads = 1;
  double time_limit = 600;            // seconds; plan() refuses what would take longer
  bool remote = false;                // training runs on other machines: none of it is refused
  std::filesystem::path folder = {};  // where training runs live; needed to compute them
  /// The program whose worker processes train them; empty: this process does. On a GPU every run
  /// needs a process of its own, because CUDA does not let one thread synchronise the device while
  /// another captures its step.
  std::filesystem::path program = {};

  std::size_t size(std::string_view name) const;
  double number(std::string_view name) const;
  std::string text(std::string_view name) const;
  bool flag(std::string_view name) const;
};

/// Called with the share done; throws StoppedError to stop the work.
using Ticker = std::function<void(double)>;

struct Part {
  std::string key;  // everything that decides the result
  double cost = 1;  // share of the whole, in any unit
  std::function<Json(const Ticker&)> compute;
  /// For a training run: the run as study executors take it. Prepares what it reads.
  std::function<study::PlannedRun()> plan_run = {};
};

/// One measured number for the criterion with that id; no value: this run cannot decide it.
struct Measure {
  std::string criterion;
  std::optional<double> value;
  std::optional<Interval> interval = {};  // where given, it decides the verdict
};

struct Conclusion {
  std::vector<Measure> measures;
  Json data = Json::object();  // the experiment's own fields of the JSON output
  std::vector<ExhibitTable> tables;
  std::vector<ExhibitChart> charts;
  std::vector<std::string> notes;  // what must be known to read the numbers
};

struct Experiment {
  std::string claim;  // id
  std::vector<Option> options;
  std::function<std::vector<Part>(const Setup&)> plan;
  std::function<Conclusion(const Setup&, const std::vector<Json>&)> conclude;
  bool on_engine = false;  // Setup::device decides where it runs, as for all that trains

  bool has_option(std::string_view name) const;
};

/// Every experiment, one per claim, in the order of the table of claims.
const std::vector<Experiment>& experiments();
const Experiment& find_experiment(std::string_view claim);

/// Defaults, or those of --quick, replaced by what was given as text ("true" for a flag). Options
/// the experiment does not have are an error unless `lenient` (for several claims at once).
struct GivenOption {
  std::string name;
  std::string text;
};
Setup resolve_setup(const Experiment& experiment, const std::vector<GivenOption>& given, bool quick,
                    bool lenient = false);

/// ConfigError with the estimate when the work would take longer than the limit or more memory
/// than there is. `seconds` is for one thread; `shared` is false for work that cannot be divided.
void check_cost(const Setup& setup, const std::string& what, double seconds, double bytes,
                bool shared = true);

}  // namespace fathom::lab
