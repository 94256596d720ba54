#include "train/divergence_watch.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>

namespace fathom::train {

std::string DivergenceWatch::look(const StepResult& result) {
  if (!std::isfinite(result.loss)) return "the loss is not finite";
  if (!std::isfinite(result.gradient_norm)) return "the gradient is not finite";
  if (first_ == 0) first_ = mean_ = result.loss;
  mean_ += 0.1 * (result.loss - mean_);
  if (mean_ <= 1.5 * first_ + 1) return "";
  return fmt::format("the loss rose to {:.3f} from {:.3f}", mean_, first_);
}

std::string DivergenceWatch::save() const {
  return fmt::format("{} {}", first_, mean_);
}

void DivergenceWatch::load(const std::string& text) {
  std::sscanf(text.c_str(), "%lf %lf", &first_, &mean_);
}

}  // namespace fathom::train
