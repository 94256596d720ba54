#include "lab/trained/training_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <mutex>
#include <thread>

#include "core/counts.h"
#include "core/error.h"
#include "core/files.h"
#include "core/folders.h"
#include "core/hash.h"
#include "core/toml_file.h"
#include "core/units.h"
#include "data/named_corpora.h"
#include "data/prepare.h"
#include "data/token_set.h"
#include "study/planned_run.h"
#include "study/run_state.h"
#include "study/study_folder.h"
#include "study/worker_process.h"
#include "train/metrics_file.h"
#include "train/run.h"
#include "train/run_folder.h"

namespace fathom::lab {
namespace {

namespace fs = std::filesystem;

constexpr int kTrainingVersion = 1;
constexpr const char* kDefaultCorpus = "sotu";

/// The default corpus in bytes, prepared by the first run that asks for it.
const data::TokenSet& default_tokens(const fs::path& folder) {
  static std::mutex mutex;
  static std::map<fs::path, std::unique_ptr<data::TokenSet>> opened;
  const std::lock_guard lock(mutex);
  std::unique_ptr<data::TokenSet>& tokens = opened[folder];
  if (!tokens) {
    if (!data::is_token_set(folder)) {
      data::PrepareRequest request;
      request.sources = {{data::resolve_corpus(kDefaultCorpus), {}, kDefaultCorpus}};
      request.output = folder;
      request.tokenizer.kind = "bytes";
      prepare(request);
    }
    tokens = std::make_unique<data::TokenSet>(folder);
  }
  return *tokens;
}

/// Held-out loss in nats of a model that knows only how often every token occurs in training.
double unigram_loss(const data::TokenSet& tokens) {
  const auto count = [&](data::Split split) {
    const data::TokenFile& file = tokens.file(split);
    std::vector<data::TokenId> ids(file.size());
    file.copy(0, ids);
    std::vector<double> counts(file.info().vocabulary, 0);
    for (const data::TokenId id : ids) ++counts[as_size(id)];
    return counts;
  };
  const std::vector<double> training = count(data::Split::train);
  const std::vector<double> held_out = count(data::Split::valid);
  double all = 0;
  double seen = 0;
  double nats = 0;
  for (const double each : training) all += each + 1;  // add one of each: none is impossible
  for (std::size_t id = 0; id < held_out.size(); ++id) {
    seen += held_out[id];
    nats -= held_out[id] * std::log((training[id] + 1) / all);
  }
  return nats / seen;
}

Json group_json(const data::TaskScores::Group& group) {
  return {{"value", group.value}, {"targets", group.targets}, {"accuracy", group.accuracy}};
}

Json number_json(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json result_of(const train::RunRecord& record, const fs::path& metrics) {
  Json result{{"run", record.id},
              {"status", to_string(record.status)},
              {"reason", record.reason},
              {"parameters", record.parameters},
              {"steps", record.steps},
              {"tokens", record.tokens},
              {"seconds", record.seconds},
              {"loss", number_json(record.final_loss)},
              {"best_loss", number_json(record.best_loss)}};
  if (record.scores) {
    const data::TaskScores& scores = *record.scores;
    result["accuracy"] = number_json(scores.accuracy);
    result["sequence_accuracy"] = number_json(scores.sequence_accuracy);
    result["majority"] = number_json(scores.majority);
    result["first_token"] = number_json(scores.first_token);
    result["groups"] = Json::array();
    for (const auto& group : scores.groups) result["groups"].push_back(group_json(group));
  }
  result["curve"] = Json::array();
  train::read_evaluations(metrics, [&](std::int64_t step, const train::Evaluation& evaluation) {
    result["curve"].push_back({step, number_json(evaluation.loss)});
  });
  return result;
}

/// Calls the ticker with the share done; keeps the exception by which it asks for a stop.
class StopWatch {
 public:
  explicit StopWatch(const Ticker& tick) : tick_(tick) {}
  bool stops(double share) {
    try {
      if (!stopped_) tick_(share);
    } catch (const StoppedError&) {
      stopped_ = std::current_exception();
    }
    return stopped_ != nullptr;
  }
  [[noreturn]] void rethrow() const { std::rethrow_exception(stopped_); }

 private:
  const Ticker& tick_;
  std::exception_ptr stopped_;
};

train::RunRecord train_here(const train::RunSpec& spec, const data::TokenSet* tokens,
                            const train::RunFolder& folder, const Ticker& tick) {
  StopWatch watch(tick);
  train::RunOptions options;
  options.directory = folder.path();
  options.resume = true;
  std::int64_t step = 0;
  options.on_step = [&](const train::RunProgress& progress) { step = progress.step; };
  options.stop = [&] {
    constexpr std::int64_t kSteps = 16;  // between two checks
    return step % kSteps == 0 && watch.stops(as_double(step) / as_double(spec.schedule.steps));
  };
  train::RunRecord record =
      tokens == nullptr ? run_training(spec, options) : run_training(spec, *tokens, options);
  if (!is_done(record.status)) watch.rethrow();
  return record;
}

train::RunRecord train_in_worker(const Setup& setup, const train::RunSpec& spec,
                                 const study::StudyRunFolder& folder, const Ticker& tick) {
  if (const auto done = study::read_run_state(folder).record) return *done;
  make_folder(folder.path());
  if (!fs::exists(folder.spec())) {
    write_file_atomically(folder.spec(), toml_file_text(to_toml(spec)));
  }
  StopWatch watch(tick);
  study::WorkerProcess worker({setup.program.string(), "study", "worker", setup.folder.string(),
                               folder.path().filename().string()},
                              folder.log());
  for (bool told = false;;) {
    if (const auto end = worker.poll()) {
      if (const auto done = study::read_run_state(folder).record) return *done;
      if (told) watch.rethrow();
      throw DataError(
          fmt::format("run {}: {}", folder.path().string(), study::describe(*end, folder.log())));
    }
    const train::RunTail tail = train::read_run_tail(folder.metrics());
    if (watch.stops(as_double(tail.step) / as_double(spec.schedule.steps)) && !told) {
      worker.terminate();  // it leaves a checkpoint
      told = true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

/// A run with what it reads.
struct OpenedSpec {
  train::RunSpec spec;
  const data::TokenSet* tokens = nullptr;  // none for a task

  Hash128 hash() const { return tokens == nullptr ? Hash128{} : tokens->hash(); }
};

OpenedSpec open_spec(const Setup& setup, train::RunSpec spec) {
  if (spec.has_task()) return {std::move(spec), nullptr};
  spec.tokens = (setup.folder / "tokens").string();
  const data::TokenSet& tokens = default_tokens(spec.tokens);
  return {resolve(spec, tokens), &tokens};
}

/// Trains the run until it has a record. A stop leaves a checkpoint first.
Json train_part(const Setup& setup, const train::RunSpec& given, const RunReader& reader,
                const Ticker& tick) {
  const OpenedSpec opened = open_spec(setup, given);
  const train::RunSpec& spec = opened.spec;
  const data::TokenSet* tokens = opened.tokens;
  const std::string id = run_id(spec, opened.hash());
  const study::StudyRunFolder folder = study::StudyFolder(setup.folder).run(id);
  const train::RunRecord record = setup.program.empty()
                                      ? train_here(spec, tokens, folder, tick)
                                      : train_in_worker(setup, spec, folder, tick);
  Json result = result_of(record, folder.metrics());
  if (tokens != nullptr) result["unigram_loss"] = unigram_loss(*tokens);
  if (reader.read) reader.read(setup, folder.path(), result);
  return result;
}

/// Rough: enough to tell minutes from hours. One thread, or one run alone on a GPU.
double seconds_of(const train::RunSpec& spec, const Setup& setup) {
  const model::ModelSpec& model = spec.model;
  const double wide = as_double(model.width);
  const double narrow = as_double(model.layer_width());
  const double layer = 4 * narrow * narrow +
                       (model.feed_forward ? 2 * narrow * as_double(model.resolved_ffn()) : 0) +
                       as_double(model.context) * narrow;
  const double weights =
      as_double(model.layers) * layer + wide * as_double(std::max<std::int64_t>(256, model.vocab));
  const double flops = 6 * weights * as_double(spec.tokens_per_step());
  const bool gpu = setup.device.kind == engine::DeviceKind::cuda;
  const double step = gpu ? 1e-4 * as_double(1 + model.layers) + flops / 1e14 : flops / 4e10;
  return as_double(spec.schedule.steps) * step;
}

}  // namespace

std::string training_key(const train::RunSpec& spec) {
  return fmt::format("training v{} {}", kTrainingVersion, hash_bytes(to_toml(spec)).hex());
}

train::RunSpec lab_run_spec(const Setup& setup, const std::string& toml) {
  const bool gpu = setup.device.kind == engine::DeviceKind::cuda;
  const std::vector<std::string> settings{fmt::format("train.device={}", gpu ? "cuda" : "cpu"),
                                          fmt::format("train.precision={}", gpu ? "bf16" : "f32")};
  return train::read_run_spec_text(toml, "experiment", settings);
}

std::vector<Part> training_parts(const Setup& setup, const std::vector<train::RunSpec>& specs,
                                 const RunReader& reader) {
  std::vector<Part> parts;
  double seconds = 0;
  for (const train::RunSpec& spec : specs) {
    const double cost = seconds_of(spec, setup);
    seconds += cost;
    const std::string prefix = reader.name.empty() ? "" : reader.name + " ";
    parts.push_back({prefix + training_key(spec), cost,
                     [setup, spec, reader](const Ticker& tick) {
                       return train_part(setup, spec, reader, tick);
                     },
                     [setup, spec] {
                       const OpenedSpec opened = open_spec(setup, spec);
                       return study::plan_run(opened.spec, opened.hash());
                     }});
  }
  const bool gpu = setup.device.kind == engine::DeviceKind::cuda;
  if (setup.remote) return parts;
  if (gpu) engine::cuda_module();  // or a DeviceError
  check_cost(setup,
             fmt::format("{} training runs{}", specs.size(),
                         gpu ? " on the GPU" : " on the processor (--device cuda, or --quick)"),
             seconds, 0, !gpu);
  return parts;
}

double TrainedRun::number(const char* key) const {
  const auto found = result.find(key);
  return found == result.end() || found->is_null() ? NAN : found->get<double>();
}

double TrainedRun::group_error(std::int64_t value) const {
  if (!result.contains("groups")) return NAN;
  for (const Json& group : result.at("groups")) {
    if (group.at("value") == value) return 1 - group.at("accuracy").get<double>();
  }
  return NAN;
}

std::vector<TrainedRun::CurvePoint> TrainedRun::curve() const {
  std::vector<CurvePoint> points;
  for (const Json& point : result.at("curve")) {
    if (!point[1].is_null()) points.push_back({point[0].get<double>(), point[1].get<double>()});
  }
  return points;
}

std::vector<TrainedRun> trained_runs(const std::vector<train::RunSpec>& specs,
                                     const std::vector<Json>& results) {
  if (specs.size() != results.size()) throw InternalError("not one result for every run");
  std::vector<TrainedRun> runs;
  for (std::size_t i = 0; i < specs.size(); ++i) runs.push_back({specs[i], results[i]});
  return runs;
}

std::string percent(double share) {
  return fmt::format("{:.1f}", 100 * share);
}

std::string training_note(const Setup& setup, const std::vector<TrainedRun>& runs) {
  double seconds = 0;
  double tokens = 0;
  for (const TrainedRun& run : runs) {
    seconds += run.number("seconds");
    tokens += run.number("tokens");
  }
  const bool gpu = setup.device.kind == engine::DeviceKind::cuda;
  return fmt::format("{} runs, {} tokens, {} of training added up, {}", runs.size(),
                     format_count(tokens), format_seconds(seconds),
                     gpu ? "bf16 on a GPU" : "f32 on the processor, one thread each");
}

}  // namespace fathom::lab
