#include "train/run.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "train/step_cost.h"

namespace fathom::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr int kStepsAhead = 4;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Json number_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

/// metrics.jsonl: one line an event, flushed, never rewritten but for what a resume cuts off.
class MetricsFile {
 public:
  explicit MetricsFile(fs::path path) : path_(std::move(path)) {}

  void open(std::uint64_t kept_bytes) {
    std::error_code error;
    if (fs::exists(path_)) fs::resize_file(path_, kept_bytes, error);
    if (error) throw DataError(fmt::format("{}: {}", path_.string(), error.message()));
    stream_.open(path_, std::ios::app | std::ios::binary);
    if (!stream_) throw DataError(fmt::format("{}: cannot be written", path_.string()));
    bytes_ = kept_bytes;
  }
  void add(const Json& line) {
    const std::string text = line.dump() + "\n";
    stream_ << text;
    stream_.flush();
    if (!stream_)
      throw DataError(fmt::format("{}: cannot write; is the disk full?", path_.string()));
    bytes_ += text.size();
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  fs::path path_;
  std::ofstream stream_;
  std::uint64_t bytes_ = 0;
};

Json to_json(const RunRecord& record) {
  return {{"schema", "fathom.record.v1"},
          {"id", record.id},
          {"outcome", to_string(record.outcome)},
          {"reason", record.reason},
          {"layers", record.layers},
          {"width", record.width},
          {"heads", record.heads},
          {"seed", record.seed},
          {"parameters", record.parameters},
          {"non_embedding_parameters", record.non_embedding},
          {"steps", record.steps},
          {"tokens", record.tokens},
          {"final_loss", number_or_null(record.final_loss)},
          {"best_loss", number_or_null(record.best_loss)},
          {"final_bits_per_byte", number_or_null(record.final_bits_per_byte)},
          {"flops", record.flops},
          {"seconds", record.seconds},
          {"timed_steps", record.timed_steps},
          {"memory_bytes", record.memory_bytes}};
}

/// Loss that is no number, or a running mean far above where training began.
class DivergenceWatch {
 public:
  /// The reason, or "" while all is well.
  std::string look(const StepResult& result) {
    if (!std::isfinite(result.loss)) return "the loss is no number";
    if (!std::isfinite(result.gradient_norm)) return "the gradient is no number";
    if (first_ == 0) first_ = mean_ = result.loss;
    mean_ += 0.1 * (result.loss - mean_);
    if (mean_ <= 1.5 * first_ + 1) return "";
    return fmt::format("the loss rose to {:.3f} from {:.3f}", mean_, first_);
  }
  std::string save() const { return fmt::format("{} {}", first_, mean_); }
  void load(const std::string& text) { std::sscanf(text.c_str(), "%lf %lf", &first_, &mean_); }

 private:
  double first_ = 0, mean_ = 0;
};

class Run {
 public:
  Run(const RunSpec& spec, const data::TokenSet& tokens, const RunOptions& options)
      : spec_(spec),
        options_(options),
        trainer_(spec, tokens),
        metrics_(options.directory / "metrics.jsonl"),
        checkpoint_(checkpoint_path(options.directory)) {
    ahead_ = options.steps_ahead;
    if (ahead_ < 0) ahead_ = spec.device == engine::DeviceKind::cuda ? kStepsAhead : 0;
    record_.id = run_id(spec, tokens.hash());
    record_.layers = spec.model.layers;
    record_.width = spec.model.width;
    record_.heads = spec.model.heads;
    record_.seed = spec.seed;
    record_.parameters = trainer_.model().parameter_count();
    record_.non_embedding = trainer_.model().non_embedding_count();
    record_.best_loss = INFINITY;
    flops_ = training_flops(trainer_.model().plan) * static_cast<double>(spec.accumulation);
  }

  RunRecord go() {
    const auto begin = Clock::now();
    const bool ended = start();
    const std::int64_t first = first_ = trainer_.steps_done();
    if (ended) return write_record(begin);
    record_.outcome = Outcome::finished;
    bool stopping = false;
    while (trainer_.steps_done() < spec_.schedule.steps) {
      if (!stopping) start_steps();
      const StepResult result = trainer_.finish_step();
      const std::int64_t step = trainer_.steps_done();
      metrics_.add({{"step", step},
                    {"loss", number_or_null(result.loss)},
                    {"gradient_norm", number_or_null(result.gradient_norm)},
                    {"learning_rate", result.learning_rate}});
      report(result, first, seconds_since(begin));
      if (const std::string reason = watch_.look(result); !reason.empty()) {
        record_.reason = fmt::format("step {}: {}", step, reason);
        trainer_.forget_pending();
        return finish(Outcome::diverged, begin);
      }
      const bool last = step == spec_.schedule.steps;
      if (!last && is_due(spec_.eval_every) && !evaluate()) {
        return finish(Outcome::early_stopped, begin);
      }
      if (!last && is_due(spec_.checkpoint_every)) save(checkpoint_);
      if (step == options_.stem_step) save(stem_path(options_.directory));
      if (!last && !stopping && options_.stop) stopping = options_.stop();
      if (!last && stopping && trainer_.steps_started() == step) {
        save(checkpoint_);
        record_.outcome = Outcome::interrupted;
        record_.steps = step;
        record_.tokens = step * spec_.tokens_per_step();
        record_.seconds = seconds_since(begin);
        return record_;
      }
    }
    evaluate();
    return finish(Outcome::finished, begin);
  }

 private:
  bool is_due(std::int64_t period) const {
    return period > 0 && trainer_.steps_done() % period == 0;
  }

  /// After this step the state is looked at: nothing may be on its way.
  bool is_boundary(std::int64_t step) const {
    const auto due = [&](std::int64_t period) { return period > 0 && step % period == 0; };
    return step == spec_.schedule.steps || step == options_.stem_step || due(spec_.eval_every) ||
           due(spec_.checkpoint_every);
  }

  void start_steps() {
    while (trainer_.steps_started() == trainer_.steps_done() ||
           (trainer_.steps_started() - trainer_.steps_done() <= ahead_ &&
            !is_boundary(trainer_.steps_started()))) {
      trainer_.start_step();
    }
  }

  /// True when the run had come to its end and only its record was missing.
  bool start() {
    fs::create_directories(checkpoint_.parent_path());
    std::uint64_t kept = 0;
    std::string outcome;
    if (options_.resume && fs::exists(checkpoint_)) {
      const auto notes = trainer_.load(checkpoint_);
      const auto note = [&](const char* key) {
        const auto found = notes.find(key);
        if (found == notes.end()) {
          throw DataError(fmt::format("{}: lacks '{}'", checkpoint_.string(), key));
        }
        return found->second;
      };
      kept = std::strtoull(note("metrics_bytes").c_str(), nullptr, 10);
      record_.best_loss = std::strtod(note("best_loss").c_str(), nullptr);
      stale_ = std::strtoll(note("stale").c_str(), nullptr, 10);
      watch_.load(note("watch"));
      if (notes.contains("outcome")) {  // checkpoints of older versions have none
        record_.final_loss = std::strtod(note("final_loss").c_str(), nullptr);
        record_.final_bits_per_byte = std::strtod(note("final_bits_per_byte").c_str(), nullptr);
        record_.reason = note("reason");
        outcome = note("outcome");
      }
    }
    metrics_.open(kept);
    for (const Outcome end : {Outcome::finished, Outcome::early_stopped, Outcome::diverged}) {
      if (outcome == to_string(end)) record_.outcome = end;
    }
    return !outcome.empty();
  }

  /// `outcome` is empty before the end of the run.
  void save(const fs::path& path, const std::string& outcome = "") {
    trainer_.save(path, {{"metrics_bytes", std::to_string(metrics_.bytes())},
                         {"best_loss", fmt::format("{}", record_.best_loss)},
                         {"stale", std::to_string(stale_)},
                         {"watch", watch_.save()},
                         {"final_loss", fmt::format("{}", record_.final_loss)},
                         {"final_bits_per_byte", fmt::format("{}", record_.final_bits_per_byte)},
                         {"reason", record_.reason},
                         {"outcome", outcome},
                         {"spec", to_toml(spec_)}});
  }

  /// False when patience has run out.
  bool evaluate() {
    const Evaluation evaluation = trainer_.evaluate();
    record_.final_loss = evaluation.loss;
    record_.final_bits_per_byte = evaluation.bits_per_byte;
    stale_ = evaluation.loss < record_.best_loss ? 0 : stale_ + 1;
    record_.best_loss = std::min(record_.best_loss, evaluation.loss);
    metrics_.add({{"step", trainer_.steps_done()},
                  {"eval_loss", number_or_null(evaluation.loss)},
                  {"bits_per_byte", number_or_null(evaluation.bits_per_byte)}});
    if (options_.on_evaluation) options_.on_evaluation(trainer_.steps_done(), evaluation);
    return spec_.patience == 0 || stale_ < spec_.patience;
  }

  void report(const StepResult& result, std::int64_t first, double seconds) const {
    if (!options_.on_step) return;
    const auto done = static_cast<double>(trainer_.steps_done() - first);
    RunProgress progress;
    progress.step = trainer_.steps_done();
    progress.steps = spec_.schedule.steps;
    progress.last = result;
    progress.tokens_per_second = done * static_cast<double>(spec_.tokens_per_step()) / seconds;
    progress.flops_per_second = done * flops_ / seconds;
    progress.seconds_left =
        seconds / done * static_cast<double>(spec_.schedule.steps - trainer_.steps_done());
    options_.on_step(progress);
  }

  RunRecord finish(Outcome outcome, Clock::time_point begin) {
    record_.outcome = outcome;
    if (outcome == Outcome::diverged) record_.final_loss = record_.final_bits_per_byte = NAN;
    save(checkpoint_, to_string(outcome));
    return write_record(begin);
  }

  RunRecord write_record(Clock::time_point begin) {
    record_.steps = trainer_.steps_done();
    record_.tokens = record_.steps * spec_.tokens_per_step();
    record_.flops = flops_ * static_cast<double>(record_.steps);
    record_.seconds = seconds_since(begin);
    record_.timed_steps = record_.steps - first_;
    record_.memory_bytes = trainer_.executor().bytes();
    write_file_atomically(options_.directory / "record.json", to_json(record_).dump(2) + "\n");
    return record_;
  }

  RunSpec spec_;
  const RunOptions& options_;
  Trainer trainer_;
  MetricsFile metrics_;
  fs::path checkpoint_;
  RunRecord record_;
  DivergenceWatch watch_;
  std::int64_t stale_ = 0, first_ = 0, ahead_ = 0;
  double flops_ = 0;
};

/// The directory is new, or holds this very run.
void check_directory(const RunSpec& spec, const data::TokenSet& tokens, const RunOptions& options) {
  const fs::path spec_path = options.directory / "spec.toml";
  if (!fs::exists(spec_path)) {
    fs::create_directories(options.directory);
    write_file_atomically(spec_path, to_toml(spec));
    return;
  }
  const RunSpec held = resolve(read_run_spec(spec_path, {}), tokens);
  if (run_id(held, tokens.hash()) != run_id(spec, tokens.hash())) {
    throw ConfigError(
        fmt::format("{} holds another run (its spec.toml differs); give another --out",
                    options.directory.string()));
  }
  if (!options.resume && fs::exists(options.directory / "metrics.jsonl")) {
    throw ConfigError(fmt::format("{} holds an unfinished run; --resume goes on with it",
                                  options.directory.string()));
  }
}

}  // namespace

std::string to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::finished:
      return "finished";
    case Outcome::early_stopped:
      return "early_stopped";
    case Outcome::diverged:
      return "diverged";
    case Outcome::interrupted:
      return "interrupted";
  }
  return "";
}

RunRecord read_run_record(const fs::path& path) {
  const auto json = read_json_file(path);
  try {
    const auto number = [&](const char* key) {
      return json.at(key).is_null() ? NAN : json.at(key).get<double>();
    };
    RunRecord record;
    record.id = json.at("id");
    const std::string outcome = json.at("outcome");
    for (const Outcome o : {Outcome::finished, Outcome::early_stopped, Outcome::diverged}) {
      if (to_string(o) == outcome) record.outcome = o;
    }
    record.reason = json.value("reason", "");
    record.layers = json.value("layers", std::int64_t{0});
    record.width = json.value("width", std::int64_t{0});
    record.heads = json.value("heads", std::int64_t{0});
    record.seed = json.value("seed", std::uint64_t{0});
    record.parameters = json.at("parameters");
    record.non_embedding = json.value("non_embedding_parameters", std::int64_t{0});
    record.steps = json.at("steps");
    record.tokens = json.at("tokens");
    record.final_loss = number("final_loss");
    record.best_loss = number("best_loss");
    record.final_bits_per_byte = number("final_bits_per_byte");
    record.flops = json.value("flops", 0.0);
    record.seconds = number("seconds");
    record.timed_steps = json.value("timed_steps", record.steps);
    record.memory_bytes = json.at("memory_bytes");
    return record;
  } catch (const nlohmann::json::exception&) {
    throw DataError(fmt::format("{}: is not a record of a run", path.string()));
  }
}

fs::path checkpoint_path(const fs::path& directory) {
  return directory / "checkpoint" / "state.safetensors";
}

fs::path stem_path(const fs::path& directory) {
  return directory / "checkpoint" / "stem.safetensors";
}

RunRecord run_training(const RunSpec& spec, const data::TokenSet& tokens,
                       const RunOptions& options) {
  const RunSpec resolved = resolve(spec, tokens);
  const fs::path record = options.directory / "record.json";
  if (fs::exists(record)) {
    const RunRecord done = read_run_record(record);
    if (done.id == run_id(resolved, tokens.hash())) return done;
    throw ConfigError(fmt::format("{} holds the finished run {}; give another --out",
                                  options.directory.string(), done.id));
  }
  check_directory(resolved, tokens, options);
  return Run(resolved, tokens, options).go();
}

}  // namespace fathom::train
