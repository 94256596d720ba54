#include "fits/joint_form.h"

#include <cmath>

#include "core/counts.h"

namespace fathom::fits {
namespace {

std::vector<double> log_inputs(const JointForm& form, double layers, double width, double params,
                               double tokens) {
  std::vector<double> logs;
  if (form.width) logs.push_back(std::log(width));
  if (form.depth) logs.push_back(std::log(layers));
  if (form.params) logs.push_back(std::log(params));
  if (form.tokens) logs.push_back(std::log(tokens));
  return logs;
}

}  // namespace

std::vector<std::string> JointForm::terms() const {
  std::vector<std::string> names;
  if (width) names.push_back("w");
  if (depth) names.push_back("L");
  if (params) names.push_back("P");
  if (tokens) names.push_back("T");
  return names;
}

std::string JointForm::name() const {
  std::string text;
  for (const std::string& term : terms()) text += (text.empty() ? "" : "+") + term;
  return interaction ? text + "*L" : text;
}

int JointForm::size() const {
  return 2 * static_cast<int>(terms().size()) + (interaction ? 1 : 0) + 1;
}

double JointLaw::interaction() const {
  return form_.interaction ? coefficients_[coefficients_.size() - 2] : 0;
}

double JointLaw::loss(double layers, double width, double params, double tokens) const {
  const std::vector<double> logs = log_inputs(form_, layers, width, params, tokens);
  double sum = std::exp(log_constant());
  for (std::size_t k = 0; k < logs.size(); ++k) {
    const int term = static_cast<int>(k);
    double log_term = log_coefficient(term) - exponent(term) * logs[k];
    // The token term comes last.
    if (form_.interaction && k + 1 == logs.size()) log_term += interaction() * std::log(layers);
    sum += std::exp(log_term);
  }
  return sum;
}

bool JointLaw::physical() const {
  for (int term = 0; term < static_cast<int>(form_.terms().size()); ++term) {
    if (!(exponent(term) >= 0)) return false;
  }
  return coefficients_.allFinite();
}

JointObjective::JointObjective(JointForm form, std::span<const RunPoint> points) : form_(form) {
  const auto runs = as_signed(points.size());
  log_inputs_.resize(runs, as_signed(form.terms().size()));
  log_depths_.resize(runs);
  log_losses_.resize(runs);
  for (Eigen::Index i = 0; i < runs; ++i) {
    const RunPoint& point = points[i];
    const auto layers = as_double(point.layers);
    const std::vector<double> logs =
        log_inputs(form, layers, as_double(point.width), point.params, point.tokens);
    for (std::size_t k = 0; k < logs.size(); ++k) {
      log_inputs_(i, as_signed(k)) = logs[k];
    }
    log_depths_[i] = std::log(layers);
    log_losses_[i] = std::log(point.loss);
  }
}

/// ln of every term, the constant last, one row per run.
Eigen::ArrayXXd JointObjective::log_terms(const Eigen::VectorXd& c) const {
  const Eigen::Index terms = log_inputs_.cols();
  Eigen::ArrayXXd logs(log_inputs_.rows(), terms + 1);
  for (Eigen::Index k = 0; k < terms; ++k) {
    logs.col(k) = c[2 * k] - c[2 * k + 1] * log_inputs_.col(k).array();
  }
  if (form_.interaction) logs.col(terms - 1) += c[c.size() - 2] * log_depths_.array();
  logs.col(terms) = c[c.size() - 1];
  return logs;
}

double JointObjective::value(const Eigen::VectorXd& c, double delta,
                             Eigen::VectorXd* gradient) const {
  const Eigen::Index terms = log_inputs_.cols();
  Eigen::ArrayXXd shares = log_terms(c);
  const Eigen::ArrayXd top = shares.rowwise().maxCoeff();
  shares = (shares.colwise() - top).exp();
  const Eigen::ArrayXd total = shares.rowwise().sum();
  const Eigen::ArrayXd residual = log_losses_.array() - top - total.log();
  const Eigen::ArrayXd size = residual.abs();
  const Eigen::ArrayXd inside = size.min(delta);
  // Quadratic up to delta, linear beyond: inside * (size - inside / 2) is both.
  const double sum = (inside * (size - 0.5 * inside)).sum();
  if (gradient) {
    gradient->resize(c.size());
    // d(objective) / d(prediction) = -clamp(residual, -delta, delta).
    const Eigen::ArrayXd pull = -residual.max(-delta).min(delta) / total;
    for (Eigen::Index k = 0; k < terms; ++k) {
      const Eigen::ArrayXd weight = pull * shares.col(k);
      (*gradient)[2 * k] = weight.sum();
      (*gradient)[2 * k + 1] = -(weight * log_inputs_.col(k).array()).sum();
    }
    if (form_.interaction) {
      (*gradient)[c.size() - 2] = (pull * shares.col(terms - 1) * log_depths_.array()).sum();
    }
    (*gradient)[c.size() - 1] = (pull * shares.col(terms)).sum();
  }
  return sum;
}

Eigen::VectorXd JointObjective::residuals(const Eigen::VectorXd& c) const {
  const Eigen::ArrayXXd logs = log_terms(c);
  const Eigen::ArrayXd top = logs.rowwise().maxCoeff();
  const Eigen::ArrayXd total = (logs.colwise() - top).exp().rowwise().sum();
  return (log_losses_.array() - top - total.log()).matrix();
}

}  // namespace fathom::fits
