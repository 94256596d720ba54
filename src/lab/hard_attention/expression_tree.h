// A regular expression as a tree; regular_expression.h says what it may contain.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fathom::lab {

using LetterSet = std::uint32_t;  // one bit per letter of the alphabet

struct Expression {
  enum class Kind : std::uint8_t { letters, sequence, either, repeat };
  static constexpr std::uint32_t kNoLimit = 0xffffffff;

  Kind kind = Kind::sequence;
  LetterSet letters = 0;
  std::vector<std::unique_ptr<Expression>> parts;
  std::uint32_t least = 0;  // repeat
  std::uint32_t most = 0;
};
using ExpressionPointer = std::unique_ptr<Expression>;

/// The most letters an expression may have once its repetitions are written out.
inline constexpr std::uint64_t kMaxLettersWritten = 20000;

/// One-line ConfigError, with the place, for what is malformed or too long.
ExpressionPointer parse_expression(const std::string& text, const std::string& alphabet);

/// The letters that an expression names, sorted; ConfigError for what no alphabet can hold.
std::string named_letters(const std::string& text);

/// Letters once all repetitions are written out, 2^40 at most.
std::uint64_t letters_written(const Expression& expression);

}  // namespace fathom::lab
