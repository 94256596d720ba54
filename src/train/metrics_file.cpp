#include "train/metrics_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/counts.h"
#include "core/error.h"
#include "core/json_text.h"

namespace fathom::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kStep = "step";
constexpr const char* kLoss = "loss";
constexpr const char* kGradientNorm = "gradient_norm";
constexpr const char* kLearningRate = "learning_rate";
constexpr const char* kEvalLoss = "eval_loss";
constexpr const char* kBitsPerByte = "bits_per_byte";

double number(const nlohmann::json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? found->get<double>() : NAN;
}

/// Nothing for a line that is cut short or no event.
std::optional<MetricsEvent> parse_line(std::string_view text) {
  const auto line = nlohmann::json::parse(text, nullptr, false);
  if (!line.is_object() || !line.contains(kStep) || !line[kStep].is_number()) return {};
  MetricsEvent event;
  event.step = line[kStep];
  if (line.contains(kEvalLoss)) {
    event.held_out = Evaluation{number(line, kEvalLoss), number(line, kBitsPerByte)};
  } else {
    event.training =
        StepResult{number(line, kLoss), number(line, kGradientNorm), number(line, kLearningRate)};
  }
  return event;
}

/// The last 64 KiB of a file.
std::string read_end(const fs::path& path) {
  constexpr std::streamoff kWindow = 1 << 16;
  std::ifstream stream(path, std::ios::binary | std::ios::ate);
  if (!stream) return "";
  const std::streamoff size = stream.tellg();
  stream.seekg(std::max<std::streamoff>(0, size - kWindow));
  std::string text(as_size(std::min(size, kWindow)), '\0');
  stream.read(text.data(), std::ssize(text));
  return text;
}

}  // namespace

void MetricsWriter::open(std::uint64_t kept_bytes) {
  std::error_code error;
  if (fs::exists(path_)) fs::resize_file(path_, kept_bytes, error);
  if (error) throw DataError(fmt::format("{}: {}", path_.string(), error.message()));
  stream_.open(path_, std::ios::app | std::ios::binary);
  if (!stream_) throw DataError(fmt::format("{}: cannot be written", path_.string()));
  bytes_ = kept_bytes;
}

void MetricsWriter::add(std::int64_t step, const StepResult& result) {
  write(Json{{kStep, step},
             {kLoss, number_or_null(result.loss)},
             {kGradientNorm, number_or_null(result.gradient_norm)},
             {kLearningRate, result.learning_rate}}
            .dump());
}

void MetricsWriter::add(std::int64_t step, const Evaluation& evaluation) {
  write(Json{{kStep, step},
             {kEvalLoss, number_or_null(evaluation.loss)},
             {kBitsPerByte, number_or_null(evaluation.bits_per_byte)}}
            .dump());
}

void MetricsWriter::write(const std::string& line) {
  stream_ << line << '\n' << std::flush;
  if (!stream_) throw DataError(fmt::format("{}: cannot write; is the disk full?", path_.string()));
  bytes_ += line.size() + 1;
}

void read_metrics(const fs::path& path, const std::function<void(const MetricsEvent&)>& visit) {
  std::ifstream stream(path);
  for (std::string line; std::getline(stream, line);) {
    if (const auto event = parse_line(line)) visit(*event);
  }
}

void read_evaluations(const fs::path& path,
                      const std::function<void(std::int64_t, const Evaluation&)>& visit) {
  std::ifstream stream(path);
  for (std::string line; std::getline(stream, line);) {
    if (line.find(kEvalLoss) == std::string::npos) continue;
    const auto event = parse_line(line);
    if (event && event->held_out) visit(event->step, *event->held_out);
  }
}

RunTail read_run_tail(const fs::path& path) {
  RunTail tail;
  const std::string text = read_end(path);
  std::string_view rest = text;
  bool seen_step = false;
  // From the last whole line backwards, until both a step and an evaluation were seen.
  rest = rest.substr(0, rest.rfind('\n') + 1);
  while (!rest.empty() && !(seen_step && tail.eval_loss > 0)) {
    rest.remove_suffix(1);
    const std::size_t begin = rest.rfind('\n') + 1;  // 0 when there is no line before
    const auto event = parse_line(rest.substr(begin));
    if (event && event->training && !seen_step) {
      seen_step = true;
      tail.step = event->step;
      tail.loss = std::isfinite(event->training->loss) ? event->training->loss : 0;
    } else if (event && event->held_out && tail.eval_loss == 0) {
      tail.eval_loss = std::isfinite(event->held_out->loss) ? event->held_out->loss : 0;
    }
    rest = rest.substr(0, begin);
  }
  return tail;
}

}  // namespace fathom::train
