// The surface on planted studies of the size of an hour on one GPU (fits/planted_world.h).
#include <cmath>

#include "fits/planted_world.h"
#include "fits/surface_fit.h"
#include "planted_parts.h"

namespace fathom::fits {
namespace {

void count_best_depths(const PlantedWorld& world, std::uint64_t draw, const SurfaceFit& fit,
                       Tallies& tallies) {
  for (const BestDepth& best : fit.best_depth) {
    const double truth = world.true_best_log_depth(std::log(best.params), draw);
    const bool both = best.low && best.high;
    if (!best.low && !best.high) continue;
    tallies[both ? "ln best depth" : "one-sided bound of the best depth"].add(
        best.low ? std::log(*best.low) : truth, truth, best.high ? std::log(*best.high) : truth);
  }
}

void count_crossings(const PlantedWorld& world, std::uint64_t draw, const SurfaceFit& fit,
                     Tallies& tallies) {
  for (const Transition& t : fit.crossings) {
    if (!t.adjacent || (!t.low && !t.high)) continue;
    const double truth =
        world.true_crossing(t.shallow, t.deep, std::log(t.grid_low), std::log(t.grid_high), draw);
    tallies[t.status == TransitionStatus::crossing ? "ln N of a crossing"
                                                   : "one-sided bound of a crossing"]
        .add(t.low ? std::log(*t.low) : truth, truth, t.high ? std::log(*t.high) : truth);
  }
}

struct WorldCount {
  Tallies tallies;
  bool fitted = false;
  bool told = false;
};

WorldCount count_world(const PlantedFamily& family, std::uint64_t draw) {
  WorldCount count;
  const PlantedWorld world = draw_world(family, draw);
  std::string reason;
  const auto posterior = SurfacePosterior::fit(world.draw(draw), {}, reason);
  if (!posterior) return count;
  const SurfaceFit fit = summarise_surface(*posterior);
  count.fitted = true;
  if (family.law == LawForm::exponential) {
    count.tallies["a"].add(fit.law.a_interval.low, world.a, fit.law.a_interval.high);
    count.tallies["b"].add(fit.law.b_interval.low, world.b, fit.law.b_interval.high);
  }
  count.told = (fit.exponential_odds > 1) == (family.law == LawForm::exponential);
  count_best_depths(world, draw, fit, count.tallies);
  count_crossings(world, draw, fit, count.tallies);
  return count;
}

void count_family(const std::string& title, const PlantedFamily& family, int worlds, int first) {
  std::vector<WorldCount> counts(static_cast<std::size_t>(worlds));
  for_all(counts.size(), [&](std::size_t i) {
    counts[i] = count_world(family, static_cast<std::uint64_t>(first) + i);
  });
  Tallies tallies;
  int told = 0;
  int fitted = 0;
  for (const WorldCount& count : counts) {
    for (const auto& [name, tally] : count.tallies) tallies[name].add(tally);
    fitted += count.fitted;
    told += count.told;
  }
  print(title, tallies);
  fmt::print("  {:44} {:4} of {:4} worlds\n", "form told (exponential or power law)", told, fitted);
  std::fflush(stdout);
}

}  // namespace

void count_surfaces(int worlds, int first, const std::string& only) {
  PlantedFamily wild;
  wild.wild = true;
  PlantedFamily bent;
  bent.bend_least = 0.0005;
  bent.bend_most = 0.002;
  PlantedFamily strange;
  strange.strange_bowl = true;
  PlantedFamily power;
  power.law = LawForm::power;
  PlantedFamily quiet_small;
  quiet_small.noise_size_slope = 0.3;
  PlantedFamily lengths;
  lengths.lengths = true;
  PlantedFamily bent_lengths = bent;
  bent_lengths.lengths = true;
  PlantedFamily drifting = lengths;
  drifting.drift = 0.3;
  for (const auto& [title, family] :
       {std::pair{"exponential worlds", PlantedFamily{}},
        std::pair{"one depth with five times the noise", wild},
        std::pair{"a bend of 0.05 to 0.2 % that no form knows", bent},
        std::pair{"a bowl that no form has (quartic)", strange},
        std::pair{"noise that falls with size as N^-0.3", quiet_small},
        std::pair{"power-law worlds", power}, std::pair{"two training lengths", lengths},
        std::pair{"two training lengths and a bend", bent_lengths},
        std::pair{"two training lengths, a slope that changes with length", drifting}}) {
    if (std::string(title).find(only) != std::string::npos) {
      count_family(title, family, worlds, first);
    }
  }
}

}  // namespace fathom::fits
