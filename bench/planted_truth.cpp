// How often stated 95 % intervals cover the planted truth: planted_truth [DRAWS, default 100]
// [transitions|joint|surface|design|rounds] [FIRST, default 1] [ONLY: a part of the name of a kind
// of world or of a goal].
//
// Worlds are numbered: FIRST is the first one drawn, so that settings chosen on some worlds can be
// judged on others.
//
// Synthetic studies with known transitions, a and b, with a known joint law and with a known
// surface; the share of draws whose interval covers the truth, for every kind of interval Fathom
// states. `design`: what an adaptive study costs compared with a grid; `rounds`: the same with
// every round as CSV (kind, goal, world, FLOPs, error).
#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <string>

#include "fits/planted.h"
#include "fits/study_fit.h"
#include "laws/budget.h"
#include "planted_parts.h"

using namespace fathom::fits;
using fathom::Interval;
using fathom::laws::Budget;

namespace {

void count_transitions(const PlantedTransitions& planted, std::uint64_t draw, Tallies& tallies) {
  std::string reason;
  const auto family = CurveFamily::fit(planted.draw(draw), reason);
  if (!family) return;
  const auto replicates = family->bootstrap(1000, 1);
  const auto transitions = find_transitions(*family, replicates);
  for (const Transition& t : transitions) {
    for (std::size_t k = 1; k < planted.depths.size(); ++k) {
      if (!t.adjacent || planted.depths[k] != t.deep) continue;
      const double truth = planted.crossing(k);
      if (t.status == TransitionStatus::crossing) {
        tallies[fmt::format("ln N of {} over {}", t.deep, t.shallow)].add(std::log(*t.low), truth,
                                                                          std::log(*t.high));
      } else if (t.low || t.high) {
        tallies[fmt::format("one-sided bound of {} over {}", t.deep, t.shallow)].add(
            t.low ? std::log(*t.low) : truth, truth, t.high ? std::log(*t.high) : truth);
      } else {
        ++tallies[fmt::format("nothing said of {} over {}", t.deep, t.shallow)].stated;
      }
    }
  }
  const auto law = fit_exponential(*family, transitions, replicates, Reading::deeper, reason);
  if (!law) return;
  tallies["a"].add(law->a_interval.low, planted.a, law->a_interval.high);
  tallies["b"].add(law->b_interval.low, planted.b, law->b_interval.high);
}

double log_best_depth(const JointLaw& law) {
  const Budget budget = Budget::non_embedding(3e7);
  return std::log(fathom::laws::least_loss_depth(
      budget, [&](double layers, double width) { return law.loss(layers, width, 3e7, 3.2e9); }));
}

void count_joint(const PlantedJoint& planted, std::uint64_t draw, Tallies& tallies) {
  const auto points = planted.draw(draw);
  JointOptions options;
  options.starts = 20;
  std::string reason;
  auto fit = fit_joint(points, planted.law.form(), options, reason);
  if (!fit) return;
  bootstrap_joint(points, options, 100, *fit);
  const auto terms = planted.law.form().terms();
  for (std::size_t k = 0; k < terms.size(); ++k) {
    const Interval range = fit->intervals[2 * k + 1];
    tallies["exponent of " + terms[k]].add(range.low, planted.law.exponent(static_cast<int>(k)),
                                           range.high);
  }
  const Interval depth = replicate_interval(*fit, log_best_depth);
  tallies["ln best depth at 30M, 3.2B tokens"].add(depth.low, log_best_depth(planted.law),
                                                   depth.high);
  const auto far = [](const JointLaw& law) {
    return law.loss(24, 1024, 12.0 * 24 * 1024 * 1024, 6.4e9);
  };
  const Interval loss = replicate_interval(*fit, far);
  tallies["loss of 24x1024 after 6.4B tokens"].add(loss.low, far(planted.law), loss.high);
}

JointLaw planted_law(bool interaction) {
  Eigen::VectorXd c(interaction ? 8 : 7);
  if (interaction) {
    c << std::log(8.0), 0.5, std::log(1.2), 0.7, std::log(150.0), 0.35, 0.25, std::log(1.7);
  } else {
    c << std::log(8.0), 0.5, std::log(1.2), 0.7, std::log(300.0), 0.35, std::log(1.7);
  }
  return {{true, true, false, true, interaction}, c};
}

JointLaw one_length_law() {
  Eigen::VectorXd c(5);
  c << std::log(8.0), 0.5, std::log(1.2), 0.7, std::log(1.9);
  return {{true, true, false, false, false}, c};
}

}  // namespace

int main(int count, char** arguments) {
  const int draws = count > 1 ? std::atoi(arguments[1]) : 100;
  const std::string part = count > 2 ? arguments[2] : "";
  const int first = count > 3 ? std::atoi(arguments[3]) : 1;
  const std::string only = count > 4 ? arguments[4] : "";
  if (part == "surface") return count_surfaces(draws, first, only), 0;
  if (part == "design" || part == "rounds") {
    return compare_designs(draws, first, only, part == "rounds"), 0;
  }
  const PlantedTransitions one_seed;
  PlantedTransitions three_seeds = one_seed;
  three_seeds.seeds = 3;
  PlantedTransitions coarse = one_seed;
  coarse.sizes = 4;
  PlantedTransitions few = one_seed;
  few.sizes = 5;
  few.depths = {2, 3, 6};
  few.smallest = 1e5;
  few.largest = 4e6;
  few.seeds = 2;
  for (const auto& [title, planted] : {std::pair{"5 depths, 7 sizes, 1 seed", one_seed},
                                       std::pair{"5 depths, 7 sizes, 3 seeds", three_seeds},
                                       std::pair{"5 depths, 4 sizes, 1 seed", coarse},
                                       std::pair{"3 depths, 5 sizes, 2 seeds", few}}) {
    if (part == "joint") break;
    Tallies tallies;
    for (int draw = first; draw < first + draws; ++draw) {
      count_transitions(planted, static_cast<std::uint64_t>(draw), tallies);
    }
    print(title, tallies);
  }
  PlantedJoint one_length{one_length_law()};
  one_length.tokens = {3.2e9};
  for (const auto& [title, planted] :
       {std::pair{"joint law w+L, 20 runs", one_length},
        std::pair{"joint law w+L+T, 60 runs of 20 shapes", PlantedJoint{planted_law(false)}},
        std::pair{"joint law w+L+T*L, 60 runs of 20 shapes", PlantedJoint{planted_law(true)}}}) {
    if (part == "transitions") break;
    Tallies tallies;
    for (int draw = first; draw < first + draws; ++draw) {
      count_joint(planted, static_cast<std::uint64_t>(draw), tallies);
    }
    print(title, tallies);
  }
}
