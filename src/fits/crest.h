// How the crest of a density bends away from the straight line of its normal approximation.
//
// Where one coordinate is poorly determined and the others are well determined given it, the
// density is a thin ridge. Its crest, the highest point for each value of that coordinate, may bend
// by many times the ridge's width. Adding the bend to every draw straightens the ridge: a shear,
// which keeps volumes.
#pragma once

#include <Eigen/Core>
#include <vector>

namespace fathom::fits {

class Crest {
 public:
  /// Straight.
  Crest() = default;
  /// `bends`: an odd number of offsets, added where coordinate `along` lies ..., -step, 0, step,
  /// ... from the mode; none of them moves that coordinate.
  Crest(Eigen::Index along, double step, std::vector<Eigen::VectorXd> bends)
      : along_(along), step_(step), bends_(std::move(bends)) {}

  /// Shifts a point, given as its offset from the mode, by the crest's bend there.
  void bend(Eigen::VectorXd& off) const;

 private:
  Eigen::VectorXd tangent(std::size_t knot) const;

  Eigen::Index along_ = 0;
  double step_ = 1;
  std::vector<Eigen::VectorXd> bends_;
};

}  // namespace fathom::fits
