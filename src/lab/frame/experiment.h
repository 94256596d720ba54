// An experiment: its options, the parts of work they call for, and what the parts' results say.
//
//   options -> plan -> parts -> records -> conclusion -> verdict -> page
//
// plan() refuses, before any work, what has no meaning or would not fit in memory or time. A part
// is small enough to lose and named by all that decides its result, so that a run stopped at any
// moment goes on where it was. conclude() sees results only: it would say the same from records.
// A trained claim plans one part per run: the part's key is the run's id and computing it means to
// bring the run folder to its record; conclude() then reads records like any other result.
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
  bool setup = true;                    // given by hand it asks a question of one's own
};

/// The options of one run, resolved.
struct Setup {
  Json values = Json::object();
  bool quick = false;
  bool own = false;  // some set-up option was given: one set-up instead of the claim's list
  engine::Device device;
  std::size_t threads = 1;
  double time_limit = 600;            // seconds; plan() refuses what would take longer
  bool remote = false;                // training is for other machines: nothing of it is refused
  std::filesystem::path folder = {};  // where training runs live; must be there to compute them
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
  /// Of a training run: the run as executors of studies take it. Makes what it reads.
  std::function<study::PlannedRun()> plan_run = {};
};

/// One measured number for the criterion of that id; no value: this run cannot tell.
struct Measure {
  std::string criterion;
  std::optional<double> value;
  std::optional<Interval> interval = {};  // then the verdict is the interval's
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
  bool on_engine = false;  // Setup::device decides where it runs; so it does for all that trains

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
/// than there is. `seconds` is for one thread; work that cannot be shared says so.
void check_cost(const Setup& setup, const std::string& what, double seconds, double bytes,
                bool shared = true);

}  // namespace fathom::lab
