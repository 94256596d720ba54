// Separation rank of a polynomial network, by exact linear algebra over prime fields.
//
// For generic weights the separation rank with respect to a partition (A, B) is the rank of the
// matrix y(a_m, b_n) over enough random assignments a_m to A and b_n to B. Weights and inputs are
// drawn modulo p, independently for each prime. A rank found modulo p is a proved lower bound for
// almost all real weights; where it meets a proved upper bound it is exact. Otherwise a rank below
// the grid's side is the generic rank unless a nonzero polynomial vanished by chance: probability
// at most (rank + 1) deg(y) / p per prime (Schwartz-Zippel, given that p does not divide the whole
// polynomial), multiplied over primes and summed over degree blocks.
//
// Memory: 8 n_k^2 bytes per degree block and active prime; see memory_needed().
#pragma once

#include <gmpxx.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "exact/rank_setting.h"

namespace fathom::exact {

enum class RankStatus { exact, generic, at_least };
constexpr auto enum_names(RankStatus) {
  return std::array{"exact", "generic", "at least"};
}

/// gram: the fast form, bidirectional attention only; direct: the definition itself.
enum class Method { automatic, gram, direct };
constexpr auto enum_names(Method) {
  return std::array{"auto", "gram", "direct"};
}

struct RankOptions {
  std::uint64_t seed = 1;
  std::size_t primes = 2;    // at least; more are taken while they disagree
  std::size_t threads = 2;   // primes computed at once
  double memory_bytes = 0;   // limit; 0: what the machine has
  std::size_t max_side = 0;  // no grid larger than this; 0: no limit
  bool split = true;         // by degree, where the network allows it
  Method method = Method::automatic;
  std::uint32_t prime_limit = kPrimeLimit;  // primes are the largest below; small ones err often
  /// Called from worker threads with a stage and its share done; may throw to stop the work.
  std::function<void(const std::string& stage, double fraction)> progress;
};

struct BlockResult {
  std::size_t degree = 0;  // k: degree 2k in the B inputs; 0 for a whole matrix
  std::size_t side = 0;
  std::size_t rank = 0;
  mpz_class bound;   // this block's share of R_max
  mpz_class proved;  // the sharpest proved bound, at most `bound`
};

struct RankResult {
  std::size_t rank = 0;
  RankStatus status = RankStatus::at_least;
  mpz_class rmax;        // sum of the structural bounds
  mpz_class bound;       // sum of the sharpest proved bounds: what `exact` refers to
  std::size_t grid = 0;  // sum of the sides: the side of the matrix that was not split
  bool split = false;
  Method method = Method::direct;
  std::vector<BlockResult> blocks;
  std::vector<std::uint32_t> primes;
  double error_probability = 0;
  double bytes = 0;  // largest need, by memory_needed
  double seconds = 0;
};

/// Bytes for `threads` primes at once on blocks of these sides.
double memory_needed(const RankSetting& setting, const std::vector<std::size_t>& sides,
                     std::size_t threads);

/// Bytes that compute_rank will claim at its start with one prime at a time; ConfigError as there.
double smallest_memory(const RankSetting& setting, const RankOptions& options = {});

/// ConfigError for a setting without meaning or one that cannot fit in memory, before any work.
RankResult compute_rank(const RankSetting& setting, const RankOptions& options = {});

/// The matrices themselves, one per requested side: entries y_k(a_m, b_n) modulo `prime`, balanced.
std::vector<std::vector<double>> sample_matrices(const RankSetting& setting, Method method,
                                                 std::uint32_t prime, std::uint64_t seed,
                                                 const std::vector<std::size_t>& sides,
                                                 const std::function<void(double)>& progress = {});

}  // namespace fathom::exact
