#include "lab/hard_attention/brasp.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace fathom::lab {
namespace {

using FormulaKind = BooleanFormula::Kind;

/// Largest depth of the vectors that a formula names.
std::size_t depth_of(const BooleanFormula& formula, const std::vector<std::size_t>& depths) {
  if (formula.kind == FormulaKind::vector_i || formula.kind == FormulaKind::vector_j) {
    return depths[formula.vector];
  }
  std::size_t depth = 0;
  for (const BooleanFormula& part : formula.parts) depth = std::max(depth, depth_of(part, depths));
  return depth;
}

}  // namespace

bool BooleanFormula::evaluate(const std::vector<bool>& at_i, const std::vector<bool>& at_j) const {
  switch (kind) {
    case FormulaKind::constant:
      return value;
    case FormulaKind::vector_i:
      return at_i[vector];
    case FormulaKind::vector_j:
      return at_j[vector];
    case FormulaKind::negation:
      return !parts.front().evaluate(at_i, at_j);
    case FormulaKind::conjunction:
      return std::all_of(parts.begin(), parts.end(),
                         [&](const auto& part) { return part.evaluate(at_i, at_j); });
    case FormulaKind::disjunction:
      return std::any_of(parts.begin(), parts.end(),
                         [&](const auto& part) { return part.evaluate(at_i, at_j); });
  }
  throw InternalError("unknown formula");
}

std::string BooleanFormula::text(const std::vector<std::string>& names) const {
  switch (kind) {
    case FormulaKind::constant:
      return value ? "1" : "0";
    case FormulaKind::vector_i:
      return names[vector] + "(i)";
    case FormulaKind::vector_j:
      return names[vector] + "(j)";
    case FormulaKind::negation:
      return fmt::format("not {}", parts.front().text(names));
    case FormulaKind::conjunction:
    case FormulaKind::disjunction:
      break;
  }
  std::vector<std::string> texts;
  for (const BooleanFormula& part : parts) texts.push_back(part.text(names));
  return fmt::format("({})", join(texts, kind == FormulaKind::conjunction ? " and " : " or "));
}

BooleanFormula constant(bool value) {
  BooleanFormula formula;
  formula.value = value;
  return formula;
}

BooleanFormula at_i(std::size_t vector) {
  BooleanFormula formula;
  formula.kind = FormulaKind::vector_i;
  formula.vector = vector;
  return formula;
}

BooleanFormula at_j(std::size_t vector) {
  BooleanFormula formula = at_i(vector);
  formula.kind = FormulaKind::vector_j;
  return formula;
}

BooleanFormula negation(BooleanFormula part) {
  BooleanFormula formula;
  formula.kind = FormulaKind::negation;
  formula.parts.push_back(std::move(part));
  return formula;
}

BooleanFormula conjunction(BooleanFormula first, BooleanFormula second) {
  BooleanFormula formula;
  formula.kind = FormulaKind::conjunction;
  formula.parts.push_back(std::move(first));
  formula.parts.push_back(std::move(second));
  return formula;
}

std::vector<std::string> BraspProgram::names() const {
  std::vector<std::string> names;
  for (const char letter : alphabet + "$") names.push_back(fmt::format("Q_{}", letter));
  for (const BraspStatement& statement : statements) names.push_back(statement.name);
  return names;
}

std::vector<std::size_t> BraspProgram::depths() const {
  std::vector<std::size_t> depths(alphabet.size() + 1, 0);
  for (const BraspStatement& statement : statements) {
    const std::size_t below =
        std::max({depth_of(statement.value, depths), depth_of(statement.score, depths),
                  depth_of(statement.otherwise, depths)});
    depths.push_back(below + (statement.attention ? 1 : 0));
  }
  return depths;
}

std::string BraspProgram::text() const {
  const std::vector<std::string> all = names();
  std::string text;
  for (const BraspStatement& s : statements) {
    if (s.attention) {
      text += fmt::format("{}(i) = rightmost j < i [{}] {} : {}\n", s.name, s.score.text(all),
                          s.value.text(all), s.otherwise.text(all));
    } else {
      text += fmt::format("{}(i) = {}\n", s.name, s.value.text(all));
    }
  }
  return text;
}

bool run_program(const BraspProgram& program, std::string_view word) {
  const std::size_t letters = program.alphabet.size();
  std::vector<std::vector<bool>> positions;  // the vectors at each position
  for (const char c : word) {
    positions.emplace_back(letters + 1);
    const std::size_t letter = program.alphabet.find(c);
    if (letter == std::string::npos) throw InternalError("a word outside the alphabet");
    positions.back()[letter] = true;
  }
  positions.emplace_back(letters + 1);
  positions.back()[letters] = true;
  for (const BraspStatement& statement : program.statements) {
    std::vector<bool> column;
    for (std::size_t i = 0; i < positions.size(); ++i) {
      const std::vector<bool>& here = positions[i];
      if (!statement.attention) {
        column.push_back(statement.value.evaluate(here, here));
        continue;
      }
      std::size_t j = i;
      while (j > 0 && !statement.score.evaluate(here, positions[j - 1])) --j;
      column.push_back(j > 0 ? statement.value.evaluate(here, positions[j - 1])
                             : statement.otherwise.evaluate(here, here));
    }
    for (std::size_t i = 0; i < positions.size(); ++i) positions[i].push_back(column[i]);
  }
  return positions.back().back();
}

BraspProgram stair_program(std::size_t k) {
  enum : std::size_t { a, b, c, end };
  BraspProgram program;
  program.alphabet = "abc";
  std::size_t run = a;  // vector of "an a that ends m a's in a row"
  std::size_t next = end + 1;
  for (std::size_t m = 2; m <= k; ++m) {
    program.statements.push_back(
        {fmt::format("before_{}", m), true, at_j(run), negation(at_j(c)), constant(false)});
    program.statements.push_back(
        {fmt::format("run_{}", m), false, conjunction(at_i(a), at_i(next)), {}, {}});
    run = next + 1;
    next += 2;
  }
  program.statements.push_back({"answer", true, constant(true), at_j(run), constant(false)});
  return program;
}

}  // namespace fathom::lab
