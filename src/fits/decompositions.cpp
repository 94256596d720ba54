#include "fits/decompositions.h"

#include <Eigen/Eigenvalues>
#include <Eigen/QR>

namespace fathom::fits {

SymmetricEigen symmetric_eigen(const Eigen::MatrixXd& matrix) {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(matrix);
  return {solver.eigenvalues(), solver.eigenvectors()};
}

Eigen::VectorXd symmetric_eigenvalues(const Eigen::MatrixXd& matrix) {
  return Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(matrix, Eigen::EigenvaluesOnly)
      .eigenvalues();
}

Eigen::Index numerical_rank(const Eigen::MatrixXd& matrix) {
  return matrix.completeOrthogonalDecomposition().rank();
}

Eigen::MatrixXd pseudo_inverse(const Eigen::MatrixXd& matrix) {
  return matrix.completeOrthogonalDecomposition().pseudoInverse();
}

Eigen::VectorXd least_squares(const Eigen::MatrixXd& design, const Eigen::VectorXd& right) {
  return design.completeOrthogonalDecomposition().solve(right);
}

}  // namespace fathom::fits
