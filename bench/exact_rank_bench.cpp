// Exact ranks against their limits, on one core: elimination against dgemm's rate in the same run,
// evaluation of grids against its own operation count.
//
//   exact_rank_bench [largest n]        default 8000
//
// Elimination of a full-rank n x n matrix counts 2/3 n^3 operations. A grid entry counts the
// multiply-adds of gram_operations(), two operations each, and nothing for reductions, which are
// listed alongside; interpolation is left out by timing whole matrices.
#include <cblas.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <string>
#include <vector>

#include "exact/blas_threads.h"
#include "exact/field_rank.h"
#include "exact/gram_grid.h"
#include "exact/prime_field.h"
#include "exact/separation_rank.h"
#include "terminal/table.h"

namespace {

using namespace fathom;
using namespace fathom::exact;

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// CPU time of this thread, which does all the work: other programs affect it only through the
/// caches.
template <class Work>
double seconds(const Work& work) {
  const double start = thread_seconds();
  work();
  return thread_seconds() - start;
}

/// Operations per second of one n x n dgemm, the best of three.
double dgemm_rate(std::size_t n) {
  std::vector<double> a(n * n, 0.5), b(n * n, 0.25), c(n * n);
  const int size = static_cast<int>(n);
  double best = 1e300;
  for (int repeat = 0; repeat < 3; ++repeat) {
    best = std::min(best, seconds([&] {
                      cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size, size, size, 1.0,
                                  a.data(), size, b.data(), size, 0.0, c.data(), size);
                    }));
  }
  return 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n) / best;
}

void bench_elimination(std::size_t largest, double limit) {
  const PrimeField field(primes_below(kPrimeLimit, 1).front());
  Table table({{"n", Align::right},
               {"rank", Align::right},
               {"seconds", Align::right},
               {"GFLOP/s", Align::right},
               {"of dgemm", Align::right}});
  for (std::size_t n = 1000; n <= largest; n *= 2) {
    FieldSampler sampler(n, 0, field);
    std::vector<double> matrix = balanced_values(sampler.vector(n * n), field);
    std::size_t rank = 0;
    const double time = seconds([&] { rank = rank_mod_p(matrix, n, n, field.prime()); });
    const double rate = 2.0 / 3.0 * static_cast<double>(n * n) * static_cast<double>(n) / time;
    table.add_row({std::to_string(n), std::to_string(rank), fmt::format("{:.3f}", time),
                   fmt::format("{:.1f}", rate / 1e9), fmt::format("{:.0f} %", 100 * rate / limit)});
  }
  std::cout << "elimination modulo " << field.prime() << "\n" << table.render(Terminal{}) << "\n";
}

void bench_evaluation(double limit) {
  Table table({{"L", Align::right},
               {"d", Align::right},
               {"H", Align::right},
               {"side", Align::right},
               {"multiply-adds an entry", Align::right},
               {"reductions", Align::right},
               {"ns an entry", Align::right},
               {"GFLOP/s", Align::right},
               {"of dgemm", Align::right}});
  struct Case {
    std::size_t layers, width, heads, side;
  };
  for (const Case& c :
       {Case{2, 4, 1, 3000}, Case{2, 8, 1, 2000}, Case{2, 8, 8, 1000}, Case{2, 16, 1, 2000},
        Case{3, 2, 1, 4000}, Case{3, 4, 1, 2000}, Case{3, 4, 4, 2000}, Case{5, 2, 1, 3000}}) {
    RankSetting setting;
    setting.layers = c.layers;
    setting.width = c.width;
    setting.heads = c.heads;
    setting.positions = 2 * c.width;
    setting.partition = std::string(c.width, '0') + std::string(c.width, '1');
    const double time = seconds([&] {
      sample_matrices(setting, Method::gram, primes_below(kPrimeLimit, 1).front(), 1, {c.side});
    });
    const OperationCount count = gram_operations(setting.attention());
    const double entries = static_cast<double>(c.side) * static_cast<double>(c.side);
    const double rate = 2 * count.multiply_adds * entries / time;
    table.add_row({std::to_string(c.layers), std::to_string(c.width), std::to_string(c.heads),
                   std::to_string(c.side), fmt::format("{:.0f}", count.multiply_adds),
                   fmt::format("{:.0f}", count.reductions),
                   fmt::format("{:.1f}", 1e9 * time / entries), fmt::format("{:.1f}", rate / 1e9),
                   fmt::format("{:.0f} %", 100 * rate / limit)});
  }
  std::cout << "evaluation through the Gram form, drawing and preparing both sides included\n"
            << table.render(Terminal{});
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t largest = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 8000;
  use_one_blas_thread();
  const double limit = dgemm_rate(4000);
  std::cout << fmt::format("dgemm n = 4000, one thread: {:.1f} GFLOP/s\n\n", limit / 1e9);
  bench_elimination(largest, limit);
  bench_evaluation(limit);
  return 0;
}
