// Loss along a run, read from metrics.jsonl while it grows: each call reads only what was appended.
//
// Held-out losses are kept as they are. Training losses come once per step and are noisy:
// neighbours are averaged whenever there are more than kMostTraining points, so a run of any length
// fits.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

namespace fathom::train {

class RunCurve {
 public:
  struct Point {
    double step = 0;  // of an average: the last step in it
    double loss = 0;
  };
  static constexpr std::size_t kMostTraining = 128;

  explicit RunCurve(std::filesystem::path metrics) : path_(std::move(metrics)) {}

  /// Reads the complete lines that are new; from the start where a resume has cut the file. Returns
  /// whether there was anything new.
  bool read_on();

  const std::vector<Point>& held_out() const { return held_out_; }
  const std::vector<Point>& training() const { return training_; }

 private:
  void take(std::string_view line);
  void take_training(Point point);
  void forget();

  std::filesystem::path path_;
  std::uint64_t read_bytes_ = 0;
  std::vector<Point> held_out_, training_;
  Point sum_;                   // of the average being formed
  std::int64_t in_sum_ = 0;     // steps in it
  std::int64_t per_point_ = 1;  // steps averaged in each point
};

/// At most `limit` points, evenly chosen, the last one kept.
std::vector<RunCurve::Point> thinned(const std::vector<RunCurve::Point>& points, std::size_t limit);

}  // namespace fathom::train
