// Eigen's more expensive decompositions, compiled in one place: each takes the compiler several
// seconds.
#pragma once

#include <Eigen/Core>

namespace fathom::fits {

/// The eigenvalues of a symmetric matrix, ascending, and its eigenvectors as columns.
struct SymmetricEigen {
  Eigen::VectorXd values;
  Eigen::MatrixXd vectors;
};
SymmetricEigen symmetric_eigen(const Eigen::MatrixXd& matrix);

/// The eigenvalues alone, in a third of the time.
Eigen::VectorXd symmetric_eigenvalues(const Eigen::MatrixXd& matrix);

/// By decomposing a matrix of any shape and rank into orthogonal times triangular times orthogonal.
Eigen::Index numerical_rank(const Eigen::MatrixXd& matrix);
Eigen::MatrixXd pseudo_inverse(const Eigen::MatrixXd& matrix);
/// The shortest x with the least |design x - right|.
Eigen::VectorXd least_squares(const Eigen::MatrixXd& design, const Eigen::VectorXd& right);

}  // namespace fathom::fits
