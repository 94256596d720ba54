#include "fits/design_plan.h"

#include <algorithm>
#include <cmath>

namespace fathom::fits {
namespace {

// A planned choice is repeated until it costs this share of everything before it.
constexpr double kPlanStep = 0.02;
constexpr int kPrunings = 3;

const PlanItem* find(const std::vector<PlanItem>& items, const Candidate& candidate) {
  const auto found = std::find_if(items.begin(), items.end(), [&](const PlanItem& item) {
    return item.candidate == &candidate;
  });
  return found == items.end() ? nullptr : &*found;
}

bool decides(const GoalForecast& forecast, const DesignPlan& plan) {
  std::vector<const Candidate*> candidates;
  std::vector<double> times;
  for (const PlanItem& item : plan.items) {
    if (item.times < 1) continue;
    candidates.push_back(item.candidate);
    times.push_back(item.times);
  }
  return forecast.decided_with(candidates, times);
}

/// Drops as much of an item as possible: all, half or one of it.
void reduce(const GoalForecast& start, DesignPlan& plan, PlanItem& item) {
  const double whole = item.times;
  for (const double times : {0.0, std::floor(whole / 2), whole - 1}) {
    if (times >= whole) return;
    item.times = times;
    if (decides(start, plan)) return;
    item.times = whole;
  }
}

}  // namespace

double DesignPlan::cost() const {
  double sum = 0;
  for (const PlanItem& item : items) sum += item.times * item.candidate->cost;
  return sum;
}

std::vector<Choice> DesignPlan::open(const std::vector<Choice>& choices) const {
  const auto is_left = [&](const Candidate* candidate) {
    const PlanItem* item = find(items, *candidate);
    return item != nullptr && item->times >= 1;
  };
  std::vector<Choice> left;
  for (const Choice& choice : choices) {
    if (std::all_of(choice.begin(), choice.end(), is_left)) left.push_back(choice);
  }
  return left;
}

void DesignPlan::take(const Candidate& candidate) {
  for (PlanItem& item : items) {
    if (item.candidate == &candidate) item.times -= 1;
  }
}

std::optional<DesignPlan> greedy_plan(const GoalForecast& start, const std::vector<Choice>& choices,
                                      double spent, double most) {
  DesignPlan plan;
  GoalForecast forecast = start;
  double cost = 0;
  while (!forecast.all_decided()) {
    const Choice* next = cost < most ? pick(forecast, choices, 1e300) : nullptr;
    if (next == nullptr) return std::nullopt;
    const double times = std::max(1.0, std::floor(kPlanStep * (spent + cost) / cost_of(*next)));
    for (const Candidate* candidate : *next) {
      forecast.add(*candidate, times);
      if (find(plan.items, *candidate) == nullptr) plan.items.push_back({candidate, 0});
      for (PlanItem& item : plan.items) {
        if (item.candidate == candidate) item.times += times;
      }
    }
    cost += times * cost_of(*next);
  }
  return plan;
}

void prune(const GoalForecast& start, DesignPlan& plan) {
  for (int round = 0; round < kPrunings; ++round) {
    std::stable_sort(plan.items.begin(), plan.items.end(),
                     [](const PlanItem& x, const PlanItem& y) {
                       return x.times * x.candidate->cost > y.times * y.candidate->cost;
                     });
    for (PlanItem& item : plan.items) {
      if (item.times >= 1) reduce(start, plan, item);
    }
  }
}

std::optional<DesignPlan> plan_ahead(const GoalForecast& start, const std::vector<Choice>& choices,
                                     double spent, double most) {
  std::optional<DesignPlan> plan = greedy_plan(start, choices, spent, most);
  if (plan) prune(start, *plan);
  return plan;
}

}  // namespace fathom::fits
