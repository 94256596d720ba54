// The joint loss law as a sum of powers, in logarithms (Hoffmann 2022, Gemstones 2025):
//
//   loss = e^p_w w^-x_w + e^p_L L^-x_L + e^p_P P^-x_P + e^p_T T^-x_T [L^phi] + e^p_E
//   ln prediction = log-sum-exp over the terms
//   objective = sum over runs of Huber_delta(ln loss - ln prediction)
//
// Any subset of the terms is a form. The interaction phi multiplies the token term: with phi > 0
// deeper networks need more tokens, so the best depth grows with them; phi = 0 is the additive law,
// whose best depth is the same at every token count.
#pragma once

#include <Eigen/Core>
#include <span>
#include <string>
#include <vector>

#include "core/counts.h"
#include "fits/run_point.h"

namespace fathom::fits {

struct JointForm {
  bool width = true;
  bool depth = true;
  bool params = false;
  bool tokens = false;
  bool interaction = false;  // needs tokens

  /// "w+L+P+T", with "T*L" for the interaction.
  std::string name() const;
  /// "w", "L", "P", "T" in the order of the coefficients.
  std::vector<std::string> terms() const;
  /// Per term ln coefficient and exponent, then phi, then ln E.
  int size() const;
  bool operator==(const JointForm&) const = default;
};

/// The sum of powers at one set of coefficients.
class JointLaw {
 public:
  JointLaw(JointForm form, Eigen::VectorXd coefficients)
      : form_(form), coefficients_(std::move(coefficients)) {}

  const JointForm& form() const { return form_; }
  const Eigen::VectorXd& coefficients() const { return coefficients_; }
  double log_coefficient(Eigen::Index term) const { return coefficients_[2 * term]; }
  double exponent(Eigen::Index term) const { return coefficients_[2 * term + 1]; }
  double interaction() const;
  double log_constant() const { return coefficients_[coefficients_.size() - 1]; }
  double loss(double layers, double width, double params, double tokens) const;
  /// No exponent below zero: more width, depth, parameters or tokens never hurts.
  bool physical() const;

 private:
  JointForm form_;
  Eigen::VectorXd coefficients_;
};

/// The Huber objective on fixed runs, with its gradient.
class JointObjective {
 public:
  JointObjective(JointForm form, std::span<const RunPoint> points);

  std::size_t size() const { return as_size(log_losses_.size()); }
  const JointForm& form() const { return form_; }
  double value(const Eigen::VectorXd& coefficients, double delta,
               Eigen::VectorXd* gradient = nullptr) const;
  /// ln loss - ln prediction.
  Eigen::VectorXd residuals(const Eigen::VectorXd& coefficients) const;
  /// The same design with other ln losses.
  void set_log_losses(const Eigen::VectorXd& log_losses) { log_losses_ = log_losses; }
  const Eigen::VectorXd& log_losses() const { return log_losses_; }
  /// Mean of ln x of a term: where starts are drawn.
  double mean_log(int term) const { return log_inputs_.col(term).mean(); }

 private:
  Eigen::ArrayXXd log_terms(const Eigen::VectorXd& coefficients) const;

  JointForm form_;
  Eigen::MatrixXd log_inputs_;  // one column per term
  Eigen::VectorXd log_depths_;
  Eigen::VectorXd log_losses_;
};

}  // namespace fathom::fits
