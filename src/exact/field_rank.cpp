// The only file that sees FFLAS-FFPACK: its templates take half a minute to compile.
#include "exact/field_rank.h"

#include <fflas-ffpack/fflas-ffpack.h>
#include <fmt/format.h>

#include "core/counts.h"
#include "core/error.h"
#include "exact/blas_threads.h"

namespace fathom::exact {

std::size_t rank_mod_p(std::span<double> matrix, std::size_t rows, std::size_t columns,
                       std::uint32_t prime) {
  if (matrix.size() != rows * columns) {
    throw InternalError(
        fmt::format("matrix has {} entries, not {} x {}", matrix.size(), rows, columns));
  }
  if (prime % 2 == 0 || prime >= (1u << 26)) {
    throw InternalError(fmt::format("{} is not an odd prime below 2^26", prime));
  }
  if (matrix.empty()) return 0;
  use_one_blas_thread();
  const Givaro::ModularBalanced<double> field(as_double(prime));
  return FFPACK::Rank(field, rows, columns, matrix.data(), columns);
}

}  // namespace fathom::exact
