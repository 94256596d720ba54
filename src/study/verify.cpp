#include "study/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "core/checksum.h"
#include "core/csv.h"
#include "core/error.h"
#include "core/files.h"
#include "core/folders.h"
#include "core/json_text.h"
#include "core/safetensors.h"
#include "data/token_set.h"
#include "fits/study_law.h"
#include "study/design_log.h"
#include "study/study_rows.h"
#include "train/checkpoint_notes.h"
#include "train/metrics_file.h"
#include "train/run.h"
#include "train/weights.h"

namespace fathom::study {
namespace {

namespace fs = std::filesystem;

class Verifier {
 public:
  Verification result;

  /// Counts a text file if it exists, and reads it with `read`, whose errors are damage.
  template <class Read>
  void text_file(const fs::path& path, const Read& read) {
    std::error_code error;
    if (!fs::exists(fs::symlink_status(path, error))) return;  // a dangling link exists
    attempt([&] {
      const std::string text = read_text_file(path, SIZE_MAX);
      count(text.size(), text.find("xxh3:") != std::string::npos);
      read();
    });
  }

  template <class Read>
  void attempt(const Read& read) {
    try {
      read();
    } catch (const Error& error) {
      result.damage.emplace_back(error.what());
    }
  }

  void count(std::uint64_t bytes, bool guarded) {
    ++result.files;
    result.bytes += bytes;
    result.unguarded += guarded ? 0 : 1;
  }

  void tensors(const fs::path& path) {
    std::error_code error;
    if (!fs::exists(path, error)) return;
    attempt([&] {
      const SafetensorsFile file(path);
      count(fs::file_size(path, error), file.metadata().contains(kChecksum));
      for (const TensorView& tensor : file.tensors()) tensor.verify();
    });
  }

  void token_set(const fs::path& folder) {
    attempt([&] {
      const data::TokenSet tokens(folder);
      for (const data::Split split : data::kSplits) {
        std::error_code error;
        count(fs::file_size(data::token_file_path(folder, split), error), true);
        attempt([&] { tokens.file(split).verify(); });
      }
    });
  }

  void checkpoint(const fs::path& path, const std::string& run) {
    tensors(path);
    std::error_code error;
    if (run.empty() || !fs::exists(path, error)) return;
    attempt([&] {
      const std::string owner = train::read_checkpoint_notes(path).record.id;
      if (!owner.empty() && owner != run) {
        throw DataError(fmt::format("{}: belongs to run {}", path.string(), owner));
      }
    });
  }

  /// `run` is the id that everything in the folder must have; "" when unknown.
  void run_folder(const StudyRunFolder& folder, const std::string& run) {
    text_file(folder.spec(), [&] { train::read_run_spec(folder.spec(), {}); });
    std::uint64_t metrics_bytes = 0;
    text_file(folder.record(), [&] {
      const train::RunRecord record = train::read_run_record(folder.record());
      metrics_bytes = record.metrics_bytes;
      if (!run.empty() && record.id != run) {
        throw DataError(
            fmt::format("{}: is the record of run {}", folder.record().string(), record.id));
      }
    });
    text_file(folder.metrics(), [&] {
      for (std::string& line : train::damaged_metrics(folder.metrics(), metrics_bytes)) {
        result.damage.push_back(std::move(line));
      }
    });
    // A stem that a longer run has started from carries the shorter run's name until its first
    // save.
    tensors(folder.stem());
    checkpoint(folder.checkpoint(), fs::exists(folder.record()) ? run : "");
    tensors(folder.previous());
  }

  void study_folder(const StudyFolder& folder) {
    text_file(folder.spec(), [&] { read_study_spec(folder.spec()); });
    text_file(folder.corpus(), [&] { read_json_file(folder.corpus()); });
    text_file(folder.design(), [&] { read_design_log(folder); });
    text_file(folder.law(), [&] { fits::load_study_law(folder.law()); });
    text_file(folder.points(),
              [&] { CsvTable(read_text_file(folder.points()), folder.points().string()); });
    if (data::is_token_set(folder.tokens())) token_set(folder.tokens());
    std::vector<fs::path> runs;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder.runs(), error)) {
      if (entry.is_directory(error)) runs.push_back(entry.path());
    }
    std::sort(runs.begin(), runs.end());
    for (const fs::path& run : runs) run_folder(StudyRunFolder(run), run.filename().string());
  }
};

/// The first difference between two runs, or nothing.
std::optional<std::string> difference(const train::RunFolder& was, const train::RunFolder& now) {
  std::vector<train::MetricsEvent> before, after;
  train::read_metrics(was.metrics(), [&](const auto& event) { before.push_back(event); });
  train::read_metrics(now.metrics(), [&](const auto& event) { after.push_back(event); });
  const auto loss = [](const train::MetricsEvent& event) {
    return event.training ? event.training->loss : event.held_out->loss;
  };
  for (std::size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    const double a = loss(before[i]), b = loss(after[i]);
    if (before[i].step == after[i].step &&
        std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b)) {
      continue;
    }
    return fmt::format("step {}: loss {}, was {}", after[i].step, b, a);
  }
  if (before.size() != after.size()) {
    return fmt::format("{} lines of metrics, {} before", after.size(), before.size());
  }
  const SafetensorsFile old_state(was.checkpoint()), new_state(now.checkpoint());
  for (const TensorView& tensor : new_state.tensors()) {
    const TensorView* other = old_state.find(tensor.name);
    if (other == nullptr || !std::ranges::equal(other->bytes, tensor.bytes)) {
      return fmt::format("tensor {} differs", tensor.name);
    }
  }
  return std::nullopt;
}

Repetition repeat(const Study& study, const PlannedRun& run, const RepeatOptions& options,
                  const fs::path& scratch) {
  const data::TokenSet tokens(study.folder.tokens());
  train::RunOptions training;
  training.directory = scratch / run.id;
  training.resume = true;
  training.stop = training.stop_in_step = options.stop;
  const train::RunRecord record = run_training(run.spec, tokens, training);
  if (!is_done(record.status)) throw StoppedError("stopped; the same command continues");
  const auto found = difference(study.folder.run(run.id), train::RunFolder(training.directory));
  fs::remove_all(training.directory);
  return {run.id, !found, found.value_or("")};
}

}  // namespace

Verification verify_folder(const fs::path& folder) {
  Verifier verifier;
  const StudyFolder study(folder);
  if (study.holds_study()) {
    verifier.study_folder(study);
  } else if (data::is_token_set(folder)) {
    verifier.token_set(folder);
  } else if (fs::exists(train::RunFolder(folder).spec())) {
    verifier.run_folder(StudyRunFolder(folder), "");
  } else if (fs::exists(folder / kModelTensors)) {
    verifier.tensors(folder / kModelTensors);
    verifier.attempt([&] { train::load_weights(folder); });
  } else {
    throw DataError(fmt::format("{}: holds no study, run, token set or model", folder.string()));
  }
  return verifier.result;
}

std::vector<Repetition> repeat_runs(const fs::path& directory, const RepeatOptions& options) {
  const Study study = open_study(directory);
  std::vector<const PlannedRun*> ended;
  for (const PlannedRun& run : study.runs) {
    if (is_done(read_run_state(study.folder.run(run.id)).status)) ended.push_back(&run);
  }
  if (ended.empty()) throw DataError(fmt::format("{}: no run has ended yet", directory.string()));
  const fs::path scratch = study.folder.path() / "verify.tmp";
  make_folder(scratch);
  std::vector<Repetition> repetitions;
  const auto wanted = std::min<std::size_t>(static_cast<std::size_t>(options.runs), ended.size());
  for (std::size_t i = 0; i < wanted; ++i) {
    const PlannedRun& run = *ended[(2 * i + 1) * ended.size() / (2 * wanted)];
    if (options.note) options.note(fmt::format("training {} ({}) again", run.id, run.label()));
    repetitions.push_back(repeat(study, run, options, scratch));
  }
  std::error_code ignored;
  fs::remove_all(scratch, ignored);
  return repetitions;
}

}  // namespace fathom::study
