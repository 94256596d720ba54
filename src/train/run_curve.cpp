#include "train/run_curve.h"

#include <charconv>
#include <cmath>
#include <fstream>
#include <optional>
#include <string>

#include "core/counts.h"
#include "train/metrics_file.h"

namespace fathom::train {
namespace {

/// The number after `key`. Ten million lines are read this way when a large study is opened; a JSON
/// parser would take twenty times as long.
std::optional<double> number_behind(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  if (at == line.npos) return {};
  const std::string_view rest = line.substr(at + key.size());
  double value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (error != std::errc{} || !std::isfinite(value)) return {};
  return value;
}

/// What follows the first `skip` bytes, up to the last complete line.
std::string read_new_lines(std::ifstream& stream, std::uint64_t skip, std::uint64_t size) {
  std::string text(size - skip, '\0');
  stream.seekg(static_cast<std::streamoff>(skip));
  stream.read(text.data(), std::ssize(text));
  text.resize(as_size(stream.gcount()));
  text.resize(text.rfind('\n') + 1);  // 0 where no line is complete
  return text;
}

}  // namespace

bool RunCurve::read_on() {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path_, error)) return false;
  std::ifstream stream(path_, std::ios::binary | std::ios::ate);
  if (!stream) return false;
  const auto size = static_cast<std::uint64_t>(stream.tellg());
  const bool cut = size < read_bytes_;
  if (cut) forget();
  const std::string text = read_new_lines(stream, read_bytes_, size);
  read_bytes_ += text.size();
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    take(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  return cut || !text.empty();
}

void RunCurve::forget() {
  *this = RunCurve(path_);
}

void RunCurve::take(std::string_view line) {
  if (!metrics_line_is_whole(line)) return;
  const auto step = number_behind(line, "\"step\":");
  if (!step) return;
  if (const auto loss = number_behind(line, "\"eval_loss\":")) {
    held_out_.push_back({*step, *loss});
  } else if (const auto own = number_behind(line, "\"loss\":")) {
    take_training({*step, *own});
  }
}

void RunCurve::take_training(Point point) {
  sum_.step = point.step;
  sum_.loss += point.loss;
  if (++in_sum_ < per_point_) return;
  training_.push_back({sum_.step, sum_.loss / as_double(in_sum_)});
  sum_ = {};
  in_sum_ = 0;
  if (training_.size() < kMostTraining) return;
  for (std::size_t i = 0; i < kMostTraining / 2; ++i) {
    const Point& first = training_[2 * i];
    const Point& second = training_[2 * i + 1];
    training_[i] = {second.step, (first.loss + second.loss) / 2};
  }
  training_.resize(kMostTraining / 2);
  per_point_ *= 2;
}

std::vector<RunCurve::Point> thinned(const std::vector<RunCurve::Point>& points,
                                     std::size_t limit) {
  if (points.size() <= limit) return points;
  std::vector<RunCurve::Point> kept;
  for (std::size_t i = 1; i <= limit; ++i) kept.push_back(points[i * points.size() / limit - 1]);
  return kept;
}

}  // namespace fathom::train
