// The released errors of arXiv 2402.09268 (chsanford/hop-induction-heads), fractions wrong by k.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace fathom::lab {

inline constexpr std::array kPublishedHops{1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16};
using HopErrors = std::array<double, kPublishedHops.size()>;

/// A width's rows, from 2 layers on.
struct PublishedWidth {
  std::int64_t width, heads;
  /// As released: dropout of 0.1 was active when they were made (docs/errata.md).
  std::vector<HopErrors> errors;
  /// The released weights without dropout, where they were evaluated (60 sequences a point); NaN
  /// elsewhere.
  std::vector<HopErrors> without_dropout;
  /// Largest k with at most 5 % error as released, from 1 layer on (not trained: 0) to one more
  /// than was trained (16: all).
  std::vector<std::int64_t> largest;

  std::int64_t largest_at(std::int64_t layers) const {
    return largest.at(static_cast<std::size_t>(layers - 1));
  }
};

inline const std::vector<PublishedWidth>& published_widths() {
  constexpr double kNone = NAN;
  static const std::vector<PublishedWidth> widths{
      {128,
       4,
       {{.010, .140, .346, .423, .543, .588, .616, .658, .692, .720, .737},
        {.003, .008, .048, .150, .277, .359, .422, .456, .574, .644, .706},
        {.001, .003, .005, .015, .034, .062, .109, .216, .359, .467, .612},
        {.001, .001, .001, .003, .012, .015, .017, .037, .103, .218, .414},
        {.000, .000, .001, .002, .003, .003, .007, .006, .010, .012, .062}},
       {{kNone, .045, kNone, .340, kNone, kNone, kNone, kNone, kNone, kNone, kNone},
        {kNone, kNone, kNone, .041, kNone, .230, kNone, kNone, kNone, kNone, kNone},
        {kNone, kNone, kNone, kNone, kNone, .001, kNone, .066, kNone, .337, kNone},
        {kNone, kNone, kNone, kNone, kNone, kNone, kNone, kNone, .003, .046, .286}},
       {0, 1, 3, 5, 8, 15, 16}},
      {256,
       8,
       {{.003, .033, .140, .267, .371, .449, .513, .558, .627, .694, .729},
        {.001, .001, .005, .021, .058, .121, .182, .247, .369, .456, .591},
        {0, 0, 0, .001, .003, .004, .007, .015, .057, .139, .334},
        {0, 0, 0, 0, 0, 0, .001, 0, .001, .003, .027},
        {0, 0, 0, 0, 0, 0, 0, 0, 0, .002, .002}},
       {},
       {0, 2, 4, 9, 16, 16, 16}}};
  return widths;
}

}  // namespace fathom::lab
