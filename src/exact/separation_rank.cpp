#include "exact/separation_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>

#include "core/counts.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/units.h"
#include "exact/direct_grid.h"
#include "exact/field_rank.h"
#include "exact/gram_grid.h"
#include "exact/partition.h"
#include "exact/rank_cost.h"

namespace fathom::exact {
namespace {

constexpr std::size_t kMaxPrimes = 8;
/// First side of a block whose bound may be far from its rank.
constexpr std::size_t kFirstSide = 64;

using Sizes = std::vector<std::size_t>;

Method choose_method(const RankSetting& setting, Method wanted) {
  const bool has_gram_form = setting.family == Family::attention && !setting.causal &&
                             setting.stream == 0 && setting.width <= kMaxGramWidth;
  if (wanted == Method::gram && !has_gram_form) {
    throw ConfigError(fmt::format(
        "only bidirectional attention of width at most {} has a Gram form; use --method direct",
        kMaxGramWidth));
  }
  if (wanted == Method::automatic) return has_gram_form ? Method::gram : Method::direct;
  return wanted;
}

/// One bound per degree, or their sum where the matrix stays whole.
std::vector<mpz_class> per_block(const RankSetting& setting, bool split,
                                 std::vector<mpz_class> bounds) {
  if (split && splits_by_degree(setting)) return bounds;
  mpz_class sum = 0;
  for (const mpz_class& bound : bounds) sum += bound;
  return {sum};
}

std::size_t clamp(const mpz_class& bound, std::size_t limit) {
  return bound < limit ? bound.get_ui() : limit;
}

/// Bidirectional attention mostly meets its bounds, so its grids start there; sliced attention does
/// not.
Sizes first_sides(const RankSetting& setting, const std::vector<mpz_class>& bounds,
                  const RankOptions& options) {
  Sizes sides;
  for (const mpz_class& bound : bounds) {
    std::size_t limit = options.max_side == 0 ? std::size_t{1} << 40 : options.max_side;
    if (grids_grow(setting)) limit = std::min(limit, kFirstSide);
    sides.push_back(clamp(bound, limit));
  }
  return sides;
}

double memory_limit(const RankOptions& options) {
  return options.memory_bytes > 0 ? options.memory_bytes : usable_memory_bytes();
}

[[noreturn]] void refuse_memory(const RankSetting& setting, const Sizes& sides, double limit) {
  std::size_t total = 0;
  for (const std::size_t side : sides) total += side;
  throw ConfigError(fmt::format(
      "{} needs {} rows and columns in {} block{}, the largest of side {}: {} of memory, above the "
      "limit of {}; take a smaller network, --max-grid for a lower bound, or raise --memory",
      setting.key(), format_whole(static_cast<std::int64_t>(total)), sides.size(),
      sides.size() == 1 ? "" : "s",
      format_whole(static_cast<std::int64_t>(*std::max_element(sides.begin(), sides.end()))),
      format_bytes(memory_needed(setting, sides, 1)), format_bytes(limit)));
}

/// The work for one prime: matrices, then their ranks.
Sizes ranks_modulo(const RankSetting& setting, const RankOptions& options, Method method,
                   std::uint32_t prime, const Sizes& sides) {
  const auto report = [&](const char* stage, double fraction) {
    if (options.progress) options.progress(fmt::format("{} mod {}", stage, prime), fraction);
  };
  std::vector<std::vector<double>> matrices =
      sample_matrices(setting, method, prime, options.seed, sides,
                      [&](double fraction) { report("evaluating", fraction); });
  Sizes ranks;
  double done = 0;
  double total = 0;
  for (const std::size_t side : sides) total += std::pow(as_double(side), 3);
  for (std::size_t k = 0; k < sides.size(); ++k) {
    report("eliminating", total > 0 ? done / total : 1);
    ranks.push_back(rank_mod_p(matrices[k], sides[k], sides[k], prime));
    std::vector<double>().swap(matrices[k]);
    done += std::pow(as_double(sides[k]), 3);
  }
  return ranks;
}

/// The state of a computation: what every prime has found so far at the current sides.
class Search {
 public:
  Search(const RankSetting& setting, const RankOptions& options)
      : setting_(setting),
        options_(options),
        method_(choose_method(setting, options.method)),
        bounds_(per_block(setting, options.split, structural_bounds(setting))),
        proved_(per_block(setting, options.split, proved_bounds(setting))),
        sides_(first_sides(setting, bounds_, options)),
        limit_(memory_limit(options)),
        candidates_(primes_below(options.prime_limit, std::max(kMaxPrimes, options.primes))) {
    if (memory_needed(setting, sides_, 1) > limit_) refuse_memory(setting, sides_, limit_);
    best_.assign(bounds_.size(), 0);
  }

  RankResult run() {
    const auto start = std::chrono::steady_clock::now();
    Sizes pending = sides_;
    do {
      settle(pending);
      pending = grown();
    } while (!pending.empty());
    RankResult result = collect();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    result.seconds = elapsed.count();
    return result;
  }

 private:
  /// Ranks of the blocks with a side in `sides`, by enough primes that the largest came up twice.
  void settle(const Sizes& sides) {
    std::vector<Sizes> found;
    Sizes largest(sides.size(), 0);
    const auto settled = [&] {
      if (found.size() < options_.primes) return false;
      bool met = true;
      for (std::size_t k = 0; k < sides.size(); ++k) met &= largest[k] == sides[k];
      const auto agreeing = std::count(found.begin(), found.end(), largest);
      return met || agreeing >= 2 || options_.primes < 2 || found.size() >= candidates_.size();
    };
    while (!settled()) {
      const std::size_t missing =
          std::max<std::size_t>(1, options_.primes - std::min(found.size(), options_.primes));
      for (Sizes& ranks : run_primes(sides, found.size(), missing)) {
        for (std::size_t k = 0; k < sides.size(); ++k) {
          largest[k] = std::max(largest[k], ranks[k]);
        }
        found.push_back(std::move(ranks));
      }
    }
    for (std::size_t k = 0; k < sides.size(); ++k) {
      if (sides[k] > 0) best_[k] = largest[k];
    }
    primes_used_ = std::max(primes_used_, found.size());
  }

  std::vector<Sizes> run_primes(const Sizes& sides, std::size_t first, std::size_t count) {
    std::size_t at_once = std::max<std::size_t>(1, std::min(options_.threads, count));
    while (at_once > 1 && memory_needed(setting_, sides, at_once) > limit_) --at_once;
    bytes_ = std::max(bytes_, memory_needed(setting_, sides, at_once));
    std::vector<Sizes> results;
    for (std::size_t begin = 0; begin < count; begin += at_once) {
      std::vector<std::future<Sizes>> jobs;
      for (std::size_t i = begin; i < std::min(begin + at_once, count); ++i) {
        jobs.push_back(std::async(std::launch::async, [this, &sides, i, first] {
          return ranks_modulo(setting_, options_, method_, candidates_[first + i], sides);
        }));
      }
      for (auto& job : jobs) results.push_back(job.get());
    }
    return results;
  }

  /// Sides for the blocks that filled their grid below their bound; empty when there are none or
  /// no memory is left.
  Sizes grown() {
    Sizes next(sides_.size(), 0);
    bool any = false;
    const std::size_t limit = options_.max_side == 0 ? std::size_t{1} << 40 : options_.max_side;
    for (std::size_t k = 0; k < sides_.size(); ++k) {
      if (best_[k] < sides_[k] || proved_[k] == best_[k] || sides_[k] >= limit) continue;
      next[k] = std::min(clamp(bounds_[k], limit), 2 * sides_[k]);
      any = true;
    }
    if (!any || memory_needed(setting_, next, 1) > limit_) return {};
    for (std::size_t k = 0; k < sides_.size(); ++k) {
      if (next[k] > 0) sides_[k] = next[k];
    }
    return next;
  }

  RankResult collect() const {
    RankResult result;
    result.method = method_;
    result.split = bounds_.size() > 1;
    result.bytes = bytes_;
    result.primes.assign(candidates_.begin(),
                         candidates_.begin() + static_cast<std::ptrdiff_t>(primes_used_));
    bool met = true;
    bool saturated = true;
    for (std::size_t k = 0; k < bounds_.size(); ++k) {
      if (proved_[k] < best_[k]) {
        throw InternalError(fmt::format("{}: rank {} of degree {} exceeds the proved bound {}",
                                        setting_.key(), best_[k], k, proved_[k].get_str()));
      }
      result.blocks.push_back({k, sides_[k], best_[k], bounds_[k], proved_[k]});
      result.rank += best_[k];
      result.grid += sides_[k];
      result.rmax += bounds_[k];
      result.bound += proved_[k];
      if (proved_[k] == best_[k]) continue;
      met = false;
      saturated &= best_[k] < sides_[k];
      result.error_probability += chance_of_error(best_[k]);
    }
    result.error_probability = std::min(1.0, result.error_probability);
    result.status = met         ? RankStatus::exact
                    : saturated ? RankStatus::generic
                                : RankStatus::at_least;
    return result;
  }

  double chance_of_error(std::size_t rank) const {
    double chance = 1;
    for (std::size_t i = 0; i < primes_used_; ++i) {
      chance *=
          std::min(1.0, as_double(rank + 1) * total_degree(setting_) / as_double(candidates_[i]));
    }
    return chance;
  }

  const RankSetting& setting_;
  const RankOptions& options_;
  Method method_;
  std::vector<mpz_class> bounds_;  // grids go up to these, so that the sharper ones are tested
  std::vector<mpz_class> proved_;
  Sizes sides_;
  double limit_;
  std::vector<std::uint32_t> candidates_;
  Sizes best_;
  std::size_t primes_used_ = 0;
  double bytes_ = 0;
};

}  // namespace

double memory_needed(const RankSetting& setting, const std::vector<std::size_t>& sides,
                     std::size_t threads) {
  double matrices = 0;
  double largest = 0;
  for (const std::size_t side : sides) {
    const double n = as_double(side);
    matrices += 8 * n * n;
    largest = std::max(largest, n);
  }
  const double workspace = (kEliminationWorkspace - 1) * 8 * largest * largest;
  const double d = as_double(setting.width);
  // Inputs and, for the Gram form, records of both sides, in 8-byte numbers; twice while they are
  // converted.
  const double per_assignment =
      2 * 8 *
      (as_double(setting.positions) * as_double(setting.position_dimension()) +
       (2 * d + as_double(setting.heads) + 1) * d);
  return as_double(threads) * (matrices + workspace + 2 * largest * per_assignment);
}

double smallest_memory(const RankSetting& setting, const RankOptions& options) {
  validate(setting);
  choose_method(setting, options.method);
  return memory_needed(
      setting,
      first_sides(setting, per_block(setting, options.split, structural_bounds(setting)), options),
      1);
}

bool grids_grow(const RankSetting& setting) {
  return setting.family != Family::attention || setting.causal || setting.stream != 0;
}

namespace {

/// What the stages of a search cost, one after the other.
class CostOfStages {
 public:
  CostOfStages(const RankSetting& setting, const RankOptions& options)
      : setting_(setting), options_(options) {
    validate(setting);
    method_ = choose_method(setting, options.method);
    bounds_ = per_block(setting, options.split, structural_bounds(setting));
    sides_ = first_sides(setting, bounds_, options);
    add();
  }

  /// The next stage, its grids of at most this side; false when none would grow.
  bool grow(std::size_t side) {
    Sizes grown;
    for (const mpz_class& bound : bounds_) grown.push_back(clamp(bound, side));
    if (!grids_grow(setting_) || grown == sides_) return false;
    sides_ = std::move(grown);
    add();
    return true;
  }

  const RankCost& cost() const { return cost_; }

 private:
  void add() {
    cost_.seconds += as_double(options_.primes) * grid_seconds(setting_, method_, sides_);
    cost_.bytes = memory_needed(setting_, sides_, 1);
  }

  const RankSetting& setting_;
  const RankOptions& options_;
  Method method_ = Method::direct;
  std::vector<mpz_class> bounds_;
  Sizes sides_;
  RankCost cost_;
};

}  // namespace

RankCost search_cost(const RankSetting& setting, const RankOptions& options, std::size_t largest) {
  CostOfStages stages(setting, options);
  for (std::size_t side = 2 * kFirstSide; side <= largest; side *= 2) {
    if (!stages.grow(side)) break;
  }
  return stages.cost();
}

std::size_t side_within(const RankSetting& setting, const RankOptions& options,
                        const RankCost& limit) {
  constexpr std::size_t kLargestSide = std::size_t{1} << 20;
  CostOfStages stages(setting, options);
  for (std::size_t side = kFirstSide; side < kLargestSide; side *= 2) {
    stages.grow(2 * side);
    if (stages.cost().seconds > limit.seconds || stages.cost().bytes > limit.bytes) return side;
  }
  return kLargestSide;
}

RankResult compute_rank(const RankSetting& setting, const RankOptions& options) {
  validate(setting);
  if (options.primes < 1 || options.primes > 64) {
    throw ConfigError(fmt::format("primes must be 1 to 64, not {}", options.primes));
  }
  return Search(setting, options).run();
}

std::vector<std::vector<double>> sample_matrices(const RankSetting& setting, Method method,
                                                 std::uint32_t prime, std::uint64_t seed,
                                                 const std::vector<std::size_t>& sides,
                                                 const std::function<void(double)>& progress) {
  const PrimeField field(prime);
  // Streams of different primes and purposes never overlap.
  const auto sampler = [&](std::uint64_t purpose) {
    return FieldSampler(seed, 4 * static_cast<std::uint64_t>(prime) + purpose, field);
  };
  const std::size_t count = *std::max_element(sides.begin(), sides.end());
  if (count == 0) return std::vector<std::vector<double>>(sides.size());
  const bool attention = setting.family == Family::attention;
  const char a = attention ? setting.partition[setting.output_position] : '0';
  const Sides places{positions_of(setting.partition, a),
                     positions_of(setting.partition, a == '0' ? '1' : '0')};

  FieldSampler weights = sampler(0);
  std::vector<PrimeField::Element> embedding;
  if (setting.embedding_rank != 0) {
    embedding = weights.vector(setting.width * setting.embedding_rank);
  }
  const std::size_t dimension = setting.position_dimension();
  FieldSampler row_inputs = sampler(1);
  FieldSampler column_inputs = sampler(2);
  const Assignments rows = random_assignments(count, places.rows.size(), dimension, embedding,
                                              setting.embedding_rank, field, row_inputs);
  const Assignments columns = random_assignments(count, places.columns.size(), dimension, embedding,
                                                 setting.embedding_rank, field, column_inputs);
  std::unique_ptr<GridFunction> grid;
  if (setting.family == Family::conv) {
    grid = conv_grid(setting.conv(), random_conv_weights(setting.conv(), weights), places, rows,
                     columns, field);
  } else if (setting.family == Family::recurrent) {
    grid =
        recurrent_grid(setting.recurrent(), random_recurrent_weights(setting.recurrent(), weights),
                       places, rows, columns, field);
  } else if (setting.stream != 0) {
    grid = sliced_attention_grid(setting.sliced(),
                                 random_attention_weights(setting.attention(), weights), places,
                                 rows, columns, field);
  } else if (method == Method::gram) {
    const auto output = std::find(places.rows.begin(), places.rows.end(), setting.output_position);
    grid = gram_grid(setting.attention(), random_attention_weights(setting.attention(), weights),
                     static_cast<std::size_t>(output - places.rows.begin()), rows, columns,
                     sides.size(), field);
  } else {
    grid = direct_attention_grid(setting.attention(),
                                 random_attention_weights(setting.attention(), weights), places,
                                 rows, columns, sides.size(), field);
  }
  return degree_matrices(*grid, field, sides, progress);
}

}  // namespace fathom::exact
