// The penalty for depth: how far ln loss at size N and depth L lies above that of the best depth.
//
//   penalty(x, u, z) = k(x, z) h(v),   v = u - u*(x - m z),   u = ln L, x = ln N
//   h(v) = [(e^(pv) - 1) / p + (e^(-qv) - 1) / q] / (p + q),   k = e^(k0 + k1 dx + k2 z)
//
// This follows from two power laws: at fixed N a width term w^-2p costs L^p and a depth term L^-q,
// so too deep costs (L/L*)^p and too shallow (L/L*)^-q (arXiv 2502.06857 has p = 0.15, q = 0.37;
// 2602.05970 0.49 and 1.2). h has curvature 1 at its only minimum v = 0, so u* is the best depth
// whatever p and q are. They are kept as p - q, the skew, and ln(pq), how fast both sides steepen:
// the runs determine the first well and the second hardly at all. z = ln(tokens / the study's
// longest training at that size): m moves the law along ln N, N_transition(L) ~ T^m, k2 changes the
// curvature and s1 the law's slope, ln s + s1 z.
//
// Depths l < m cross where h is equal for both, that is where the best depth is the mean
//   L_c = [(q (m^p - l^p)) / (p (l^-q - m^-q))]^(1 / (p + q)),
// the geometric mean sqrt(lm) for p = q, a little more where too shallow costs more. So the size at
// which m starts to beat l is the one at which L_c layers are best: the law of the best depth and
// the law of the crossings are one law in two readings.
#pragma once

#include <Eigen/Core>
#include <array>

#include "fits/depth_law.h"

namespace fathom::fits {

/// A place on the surface.
struct SurfacePlace {
  double x = 0;  // ln N
  double u = 0;  // ln L
  double z = 0;  // ln of the training length over the longest
};

class DepthSurface {
 public:
  /// `lengths`: the runs differ in training length, so m, k2 and s1 are parameters too.
  DepthSurface(LawForm form, double centre, bool lengths) : law_(form, centre), lengths_(lengths) {}

  const DepthLaw& law() const { return law_; }
  /// Parameters: those of the law, then k0, k1, p - q, ln(pq), then m, k2, s1 where lengths
  /// differ.
  int size() const { return law_.size() + (lengths_ ? 7 : 4); }
  int curvature_place() const { return law_.size(); }
  int bowl_place() const { return law_.size() + 2; }
  int length_place() const { return law_.size() + 4; }

  struct Sides {
    double deep = 0;     // p
    double shallow = 0;  // q
  };
  Sides sides(const Eigen::VectorXd& parameters) const;

  double penalty(const Eigen::VectorXd& parameters, const SurfacePlace& place) const;
  /// The same with its derivatives with respect to the parameters.
  double penalty(const Eigen::VectorXd& parameters, const SurfacePlace& place,
                 Eigen::Ref<Eigen::RowVectorXd> gradient) const;
  /// The penalty along ln L at one size: what depends on the size is worked out once.
  class Section {
   public:
    double best() const { return best_; }
    double at(double u) const;
    /// At many depths, a vector unit's width at a time.
    Eigen::ArrayXd at(const Eigen::ArrayXd& u) const;

   private:
    friend class DepthSurface;
    double best_ = 0;
    double scale_ = 0;  // k / (p + q)
    double p_ = 0;
    double q_ = 0;
  };
  Section section(const Eigen::VectorXd& parameters, double x, double z = 0) const;
  Section section(const Eigen::VectorXd& parameters, const Sides& sides, double x, double z) const;
  /// ln of the best depth under the law.
  double best_log_depth(const Eigen::VectorXd& parameters, double x, double z = 0) const;
  /// The second derivative of the penalty with respect to u at the best depth.
  double curvature(const Eigen::VectorXd& parameters, double x, double z = 0) const;
  /// ln N at which the penalties of two depths are equal; +-1e300 beyond all sizes.
  double crossing(const Eigen::VectorXd& parameters, double shallow, double deep) const;

  /// The prior before any run of this study: normal, wide compared with what a study shows.
  struct Prior {
    Eigen::VectorXd mean;
    Eigen::VectorXd deviation;
  };
  Prior prior(double mean_log_depth) const;

 private:
  double log_curvature(const Eigen::VectorXd& parameters, double x, double z) const;
  /// The law at a training length: its parameters and where the size lies on it.
  struct LawThen {
    std::array<double, 3> parameters{};
    double x = 0;
  };
  LawThen law_then(const Eigen::VectorXd& parameters, double x, double z) const;

  DepthLaw law_;
  bool lengths_;
};

/// ln L_c of the header comment.
double crossing_log_depth(double shallow, double deep, double p, double q);

}  // namespace fathom::fits
