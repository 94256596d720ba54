#include "train/metrics_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "core/checksum.h"
#include "core/counts.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json_file.h"
#include "core/json_text.h"
#include "core/uninterrupted.h"

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
constexpr const char* kAccuracy = "accuracy";
constexpr const char* kSequenceAccuracy = "sequence_accuracy";

double number(const nlohmann::json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? found->get<double>() : NAN;
}

/// Nothing for a line that is cut short, damaged or not an event.
std::optional<MetricsEvent> parse_line(std::string_view text) {
  if (!metrics_line_is_whole(text)) return {};
  nlohmann::json line;
  try {
    line = nlohmann::json::parse(text, nullptr, false);
  } catch (const nlohmann::json::exception&) {  // a number beyond the range of double
    return {};
  }
  if (!line.is_object() || !line.contains(kStep) || !line[kStep].is_number_integer()) return {};
  MetricsEvent event;
  event.step = line[kStep];
  if (line.contains(kEvalLoss)) {
    event.held_out = Evaluation{number(line, kEvalLoss), number(line, kBitsPerByte),
                                number(line, kAccuracy), number(line, kSequenceAccuracy)};
  } else {
    event.training =
        StepResult{number(line, kLoss), number(line, kGradientNorm), number(line, kLearningRate)};
  }
  return event;
}

/// The lines of a plain file, none of anything else: reading a pipe in its place would block.
std::ifstream open_lines(const fs::path& path, std::ios::openmode mode = std::ios::in) {
  std::error_code error;
  return fs::is_regular_file(path, error) ? std::ifstream(path, mode) : std::ifstream();
}

/// The last 64 KiB of a file.
std::string read_end(const fs::path& path) {
  constexpr std::streamoff kWindow = 1 << 16;
  std::ifstream stream = open_lines(path, std::ios::binary | std::ios::ate);
  if (!stream.is_open()) return "";
  const std::streamoff size = stream.tellg();
  stream.seekg(std::max<std::streamoff>(0, size - kWindow));
  std::string text(as_size(std::min(size, kWindow)), '\0');
  stream.read(text.data(), std::ssize(text));
  return text;
}

}  // namespace

bool metrics_line_is_whole(std::string_view line) {
  if (!verification_is_on()) return true;
  const std::string key = fmt::format("\"{}\":\"", kChecksum);
  const std::size_t at = line.rfind(key);
  return at == std::string_view::npos ||
         checksum_holds(line, line.substr(at + key.size()).substr(0, kOpenChecksum.size()));
}

MetricsWriter::~MetricsWriter() {
  if (file_ >= 0) close(file_);
}

void MetricsWriter::fail(const char* doing) const {
  throw DataError(fmt::format("{}: cannot {}: {}", path_.string(), doing, std::strerror(errno)));
}

bool MetricsWriter::open(std::uint64_t kept_bytes) {
  file_ = uninterrupted(
      [&] { return ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644); });
  if (file_ < 0) fail("open");
  struct stat status {};
  if (fstat(file_, &status) != 0 || !S_ISREG(status.st_mode)) fail("append to this");
  bytes_ = kept_bytes;
  const bool whole = as_size(status.st_size) >= kept_bytes;
  if (!whole) bytes_ = read_text_file(path_, SIZE_MAX).rfind('\n') + 1;  // 0 without a line
  if (uninterrupted([&] { return ftruncate(file_, static_cast<off_t>(bytes_)); }) != 0) fail("cut");
  return whole;
}

void MetricsWriter::add(std::int64_t step, const StepResult& result) {
  write({{kStep, step},
         {kLoss, number_or_null(result.loss)},
         {kGradientNorm, number_or_null(result.gradient_norm)},
         {kLearningRate, result.learning_rate}});
}

void MetricsWriter::add(std::int64_t step, const Evaluation& evaluation) {
  Json line{{kStep, step}, {kEvalLoss, number_or_null(evaluation.loss)}};
  if (evaluation.scores) {
    line[kAccuracy] = number_or_null(evaluation.accuracy);
    line[kSequenceAccuracy] = number_or_null(evaluation.sequence_accuracy);
  } else {
    line[kBitsPerByte] = number_or_null(evaluation.bits_per_byte);
  }
  write(std::move(line));
}

void MetricsWriter::write(Json line) {
  const std::string text = json_line(std::move(line)) + "\n";
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(file_, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("write");
    done += as_size(count);
  }
  bytes_ += text.size();
}

void MetricsWriter::sync() {
  if (file_ >= 0 && uninterrupted([&] { return fsync(file_); }) != 0) fail("sync");
}

std::vector<std::string> damaged_metrics(const fs::path& path, std::uint64_t bytes) {
  std::vector<std::string> damage;
  std::error_code error;
  if (!verification_is_on() || !fs::exists(path, error)) return damage;
  if (!fs::is_regular_file(path, error)) {
    return {fmt::format("{}: is no file; its lines are missing", path.string())};
  }
  const std::uint64_t size = fs::file_size(path, error);
  if (bytes > 0 && size != bytes) {
    damage.push_back(fmt::format("{}: {} bytes long, {} when the run ended; lines are missing",
                                 path.string(), size, bytes));
  }
  std::ifstream stream = open_lines(path);
  std::size_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (stream.eof()) break;  // cut short, or still being written
    if (!parse_line(line)) {
      damage.push_back(fmt::format("{}:{}: damaged line, left out", path.string(), number));
    }
  }
  return damage;
}

void read_metrics(const fs::path& path, const std::function<void(const MetricsEvent&)>& visit) {
  std::ifstream stream = open_lines(path);
  for (std::string line; std::getline(stream, line);) {
    if (const auto event = parse_line(line)) visit(*event);
  }
}

void read_evaluations(const fs::path& path,
                      const std::function<void(std::int64_t, const Evaluation&)>& visit) {
  std::ifstream stream = open_lines(path);
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
  // From the last complete line backwards, until both a step and an evaluation were seen.
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
