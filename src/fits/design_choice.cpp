#include "fits/design_choice.h"

#include <cmath>

namespace fathom::fits {

double cost_of(const Choice& choice) {
  double cost = 0;
  for (const Candidate* candidate : choice) cost += candidate->cost;
  return cost;
}

std::vector<Choice> list_choices(const std::vector<Candidate>& candidates) {
  constexpr double kSameSize = 0.2;  // of ln N
  std::vector<Choice> choices;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    choices.push_back({&candidates[i]});
    for (std::size_t j = i + 1; j < candidates.size(); ++j) {
      const double apart = std::log(candidates[j].shape.params / candidates[i].shape.params);
      if (std::fabs(apart) < kSameSize &&
          candidates[i].shape.layers != candidates[j].shape.layers) {
        choices.push_back({&candidates[i], &candidates[j]});
      }
    }
  }
  return choices;
}

const Choice* pick(const GoalForecast& forecast, const std::vector<Choice>& choices, double money) {
  const Choice* best = nullptr;
  double most = 0;
  for (const Choice& choice : choices) {
    const double cost = cost_of(choice);
    if (cost > money) continue;
    const double gain = forecast.gain(choice);
    if (gain < 1e-9) continue;
    if (gain / cost > most * (1 + 1e-9)) most = gain / cost, best = &choice;
  }
  return best;
}

}  // namespace fathom::fits
