#include "cli/study_progress.h"

#include <fmt/format.h>

#include "core/counts.h"
#include "core/text.h"
#include "core/units.h"
#include "terminal/progress.h"

namespace fathom {
namespace {

constexpr std::chrono::seconds kLineEvery{30};
constexpr std::size_t kPanelRows = 12;

std::string left_text(double seconds) {
  return seconds < 0 ? "time left not known yet" : "about " + format_seconds(seconds) + " left";
}

std::string summary(const study::Snapshot& s) {
  std::string text = fmt::format("{}/{} runs done", s.done, s.total);
  if (s.failed > 0) text += fmt::format(", {} failed", s.failed);
  text += fmt::format(", {} running, {}, {}", s.running.size(), format_seconds(s.elapsed_seconds),
                      left_text(s.left_seconds));
  return s.note.empty() ? text : text + ", " + s.note;
}

std::string model_line(const study::RunningModel& model) {
  const std::int64_t steps = model.run->spec.schedule.steps;
  std::string text =
      fmt::format("{:<18} step {:>6}/{} {:3.0f} %", model.run->label(), model.tail.step, steps,
                  100 * as_double(model.tail.step) / as_double(steps));
  if (model.tail.loss > 0) text += fmt::format("  loss {:.4f}", model.tail.loss);
  if (model.tail.eval_loss > 0) text += fmt::format("  held out {:.4f}", model.tail.eval_loss);
  if (model.tokens_per_second > 0) {
    text += fmt::format("  {} tokens/s", format_count(model.tokens_per_second));
  }
  return text;
}

}  // namespace

StudyProgress::StudyProgress(Session& session)
    : panel_(session.err, is_live_error_stream(session.err), session.terminal.width),
      last_line_(std::chrono::steady_clock::now()) {}

study::ExecutorEvents StudyProgress::events() {
  study::ExecutorEvents events;
  events.begun = [this](std::size_t runs, std::size_t done) { begun(runs, done); };
  events.tick = [this](const study::Snapshot& snapshot) { tick(snapshot); };
  events.ended = [this](const study::PlannedRun& run, const study::RunState& state) {
    ended(run, state);
  };
  events.note = [this](const std::string& text) { panel_.note(text); };
  return events;
}

void StudyProgress::begun(std::size_t runs, std::size_t done_before) {
  runs_ = runs;
  done_ = done_before;
  panel_.note(fmt::format("{} runs, {} of them already done", runs_, done_));
}

void StudyProgress::tick(const study::Snapshot& snapshot) {
  if (panel_.live()) {
    std::vector<std::string> lines;
    for (const study::RunningModel& model : snapshot.running) {
      if (lines.size() == kPanelRows) break;
      lines.push_back("  " + model_line(model));
    }
    lines.push_back(summary(snapshot));
    panel_.draw(lines);
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (now - last_line_ < kLineEvery) return;
  last_line_ = now;
  panel_.note(summary(snapshot));
}

void StudyProgress::ended(const study::PlannedRun& run, const study::RunState& state) {
  done_ += is_done(state.status);
  std::string text = fmt::format("[{}/{}] {} {}: ", done_, runs_, run.id, run.label());
  if (has_result(state.status)) {
    const train::RunRecord& record = *state.record;
    text +=
        fmt::format("held-out loss {:.4f}, {:.4f} bits per byte, {} ({} tokens/s)",
                    record.final_loss, record.final_bits_per_byte, format_seconds(record.seconds),
                    format_count(std::max(1.0, record.tokens_per_second())));
  } else {
    text += to_string(state.status) + ": " + printable(state.reason, 500);
  }
  panel_.note(text);
}

}  // namespace fathom
