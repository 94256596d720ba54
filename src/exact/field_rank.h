// Rank of a dense matrix over a prime field, by FFLAS-FFPACK's blocked elimination (PLUQ on top of
// BLAS dgemm). About 2 n^2 r - 2 r^2 n + 2/3 r^3 floating-point operations for rank r.
//
// Memory: the matrix is overwritten in place; kEliminationWorkspace gives the peak.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fathom::exact {

/// Peak memory of an elimination, as a multiple of the matrix's own bytes (measured).
inline constexpr double kEliminationWorkspace = 1.4;

/// Entries are whole numbers in [-(p-1)/2, (p-1)/2], row by row; `prime` is odd and below 2^26.
/// BLAS is limited to one thread: independent matrices on separate cores are faster than two
/// threads on one elimination, so callers may run this in several threads at once.
std::size_t rank_mod_p(std::span<double> matrix, std::size_t rows, std::size_t columns,
                       std::uint32_t prime);

}  // namespace fathom::exact
