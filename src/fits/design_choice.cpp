#include "fits/design_choice.h"

#include <cmath>

namespace fathom::fits {
namespace {

constexpr int kFarSteps = 4000;  // after which a forecast gives up

double cost_of(const Choice& choice) {
  double cost = 0;
  for (const Candidate* candidate : choice) cost += candidate->cost;
  return cost;
}

}  // namespace

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

const Choice* pick(const DesignPicture& picture, const std::vector<Choice>& choices, double money) {
  const Choice* best = nullptr;
  double most = 0;
  for (const Choice& choice : choices) {
    const double cost = cost_of(choice);
    if (cost > money) continue;
    const double gain = picture.gain(choice);
    if (gain < 1e-9) continue;
    if (gain / cost > most * (1 + 1e-9)) most = gain / cost, best = &choice;
  }
  return best;
}

std::optional<double> forecast(DesignPicture picture, const std::vector<Choice>& choices,
                               double most) {
  double cost = 0;
  for (int i = 0; i < kFarSteps && cost < most; ++i) {
    if (picture.all_decided()) return cost;
    const Choice* next = pick(picture, choices, 1e300);
    if (next == nullptr) break;
    for (const Candidate* candidate : *next) picture.add(*candidate);
    cost += cost_of(*next);
  }
  return picture.all_decided() ? std::optional(cost) : std::nullopt;
}

}  // namespace fathom::fits
