// Types against the formulas they stand for, depths by hand, programs and compiled networks.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "lab/hard_attention/brasp.h"
#include "lab/hard_attention/hard_network.h"
#include "lab/hard_attention/position_types.h"
#include "lab/hard_attention/regular_expression.h"
#include "lab/hard_attention/syntactic_monoid.h"
#include "lab/hard_attention/type_table.h"

namespace fathom::lab {
namespace {

std::vector<std::string> all_words(const std::string& alphabet, std::size_t length) {
  std::vector<std::string> words{""};
  for (std::size_t begin = 0, l = 0; l < length; ++l) {
    const std::size_t end = words.size();
    for (; begin < end; ++begin) {
      for (const char c : alphabet) words.push_back(words[begin] + c);
    }
  }
  return words;
}

std::vector<int> depths(const std::string& expression, const std::string& alphabet,
                        std::size_t length, Logic logic) {
  std::vector<int> found;
  const Dfa dfa = compile_expression(expression, alphabet);
  for (const auto& depth : language_depth(dfa, length, logic).depths) {
    found.push_back(depth ? static_cast<int>(*depth) : -1);
  }
  return found;
}

TEST(Types, DepthsByHand) {
  using D = std::vector<int>;
  // a*: the end marker sees whether there is a b.
  EXPECT_EQ(depths("a*", "ab", 5, Logic::since), (D{1, 1, 1, 1, 1}));
  // (ab)*: letters and their order tell ab from a, b, aa, ba, bb; aab has the order of ab.
  EXPECT_EQ(depths("(ab)*", "ab", 6, Logic::since), (D{1, 1, 2, 2, 2, 2}));
  // (aa)*: a^m and a^(m+1) have one type at depth m: a new depth for every letter.
  EXPECT_EQ(depths("(aa)*", "a", 8, Logic::since), (D{1, 2, 3, 4, 5, 6, -1, -1}));
  // With until a^m is told apart from both ends.
  EXPECT_EQ(depths("(aa)*", "a", 8, Logic::since_until), (D{1, 2, 2, 3, 3, 4, 4, 5}));
  // Trivial on short words: no word of up to two letters ends in abb.
  EXPECT_EQ(depths("(a|b)*abb", "ab", 5, Logic::since), (D{0, 0, 2, 3, 3}));
  // Everything and nothing.
  EXPECT_EQ(depths(".*", "ab", 3, Logic::since), (D{0, 0, 0}));
  EXPECT_EQ(depths("[]", "ab", 3, Logic::since), (D{0, 0, 0}));
  EXPECT_EQ(depths("()", "ab", 3, Logic::since), (D{1, 1, 1}));
}

TEST(Types, ALanguageAndItsComplementHaveOneDepth) {
  for (const char* expression : {"(ab)*", "(a|b)*abb", "(aa)*", "[]", "a+b+a+"}) {
    for (const Logic logic : {Logic::since, Logic::since_until}) {
      const Dfa dfa = compile_expression(expression, "ab");
      Dfa complement = dfa;
      complement.accepts.flip();
      const LanguageDepth one = language_depth(dfa, 7, logic);
      const LanguageDepth other = language_depth(complement, 7, logic);
      EXPECT_EQ(one.depths, other.depths) << expression;
      ASSERT_EQ(one.witness.has_value(), other.witness.has_value()) << expression;
      if (!one.witness) continue;
      EXPECT_EQ(one.witness->in, other.witness->out) << expression;
      EXPECT_EQ(one.witness->out, other.witness->in) << expression;
    }
    const Dfa dfa = compile_expression(expression, "ab");
    Dfa complement = dfa;
    complement.accepts.flip();
    EXPECT_EQ(syntactic_monoid(dfa).size, syntactic_monoid(complement).size) << expression;
  }
}

TEST(Types, StairsNeedTheirDepth) {
  for (std::size_t k = 1; k <= 5; ++k) {
    EXPECT_EQ(depths(stair_expression(k), "abc", 7, Logic::since).back(), static_cast<int>(k));
    EXPECT_EQ(depths(stair_expression(k), "abc", 7, Logic::since_until).back(),
              static_cast<int>(1 + k / 2));
  }
}

// ---- the independent method: formulas themselves

/// Classes of (word, position) pairs, the end marker's last, under all formulas of depth k+1 given
/// the classes of depth k: every P since Q (P until Q) with P and Q unions of classes is evaluated.
class FormulaClasses {
 public:
  FormulaClasses(std::vector<std::string> words, Logic logic)
      : words_(std::move(words)), logic_(logic) {
    for (const std::string& word : words_) {
      classes_.emplace_back(word.begin(), word.end());
      classes_.back().push_back('$');
    }
    renumber();
  }

  std::size_t count() const { return count_; }
  int end_class(std::size_t word) const { return classes_[word].back(); }

  void deepen() {
    const std::uint32_t sets = 1u << count_;
    std::map<std::vector<bool>, int> numbers;
    std::vector<std::vector<int>> next;
    for (const auto& row : classes_) {
      next.emplace_back();
      for (std::size_t i = 0; i < row.size(); ++i) {
        std::vector<bool> answers;
        for (int c = 0; c < count_as_int(); ++c) answers.push_back(row[i] == c);
        for (std::uint32_t p = 0; p < sets; ++p) {
          for (std::uint32_t q = 0; q < sets; ++q) {
            answers.push_back(walk(row, i, -1, p, q));
            if (logic_ == Logic::since_until) answers.push_back(walk(row, i, 1, p, q));
          }
        }
        next.back().push_back(
            numbers.emplace(answers, static_cast<int>(numbers.size())).first->second);
      }
    }
    classes_ = std::move(next);
    renumber();
  }

 private:
  int count_as_int() const { return static_cast<int>(count_); }

  /// Going from i: a position of Q is met, with only P before it.
  static bool walk(const std::vector<int>& row, std::size_t i, int step, std::uint32_t p,
                   std::uint32_t q) {
    for (int j = static_cast<int>(i) + step; j >= 0 && j < static_cast<int>(row.size());
         j += step) {
      const int c = row[static_cast<std::size_t>(j)];
      if ((q >> c & 1) != 0) return true;
      if ((p >> c & 1) == 0) return false;
    }
    return false;
  }

  void renumber() {
    std::map<int, int> numbers;
    for (auto& row : classes_) {
      for (int& c : row) c = numbers.emplace(c, static_cast<int>(numbers.size())).first->second;
    }
    count_ = numbers.size();
  }

  std::vector<std::string> words_;
  Logic logic_;
  std::vector<std::vector<int>> classes_;
  std::size_t count_ = 0;
};

void expect_equal_classes(const std::vector<std::string>& words, std::size_t depth, Logic logic,
                          std::size_t most_classes) {
  FormulaClasses formulas(words, logic);
  for (std::size_t k = 0; k < depth; ++k) {
    if (formulas.count() > most_classes) break;  // the sets of classes would be too many
    formulas.deepen();
    for (std::size_t a = 0; a < words.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        ASSERT_EQ(same_type(words[a], words[b], k + 1, logic),
                  formulas.end_class(a) == formulas.end_class(b))
            << words[a] << " " << words[b] << " depth " << k + 1 << " " << to_string(logic);
      }
    }
  }
}

TEST(Types, AreExactlyWhatFormulasTellApart) {
  // One letter: depth 4; two letters: depth 1 and, on few words, depth 2.
  expect_equal_classes(all_words("a", 7), 4, Logic::since, 9);
  expect_equal_classes(all_words("a", 6), 2, Logic::since_until, 9);
  expect_equal_classes(all_words("ab", 4), 1, Logic::since, 9);
  expect_equal_classes(all_words("ab", 4), 1, Logic::since_until, 9);
  expect_equal_classes({"", "ab", "aab", "abab", "abaab", "aabb"}, 2, Logic::since, 9);
}

TEST(Types, TheSearchOverAllWordsAgreesWithPairs) {
  // depths[n-1] is the least depth without a colliding pair among words of up to n letters.
  for (const Logic logic : {Logic::since, Logic::since_until}) {
    for (const char* expression : {"(aab|b)*", "(a|b)*abb", "(b*ab*a)*b*", "(a(ab)*b)*"}) {
      const Dfa dfa = compile_expression(expression, "ab");
      const LanguageDepth found = language_depth(dfa, 5, logic);
      for (std::size_t n = 1; n <= 5; ++n) {
        const std::vector<std::string> words = all_words("ab", n);
        const auto collides = [&](std::size_t depth) {
          for (const std::string& in : words) {
            for (const std::string& out : words) {
              if (is_proof(dfa, {in, out, depth}, logic)) return true;
            }
          }
          return false;
        };
        std::size_t depth = 0;
        while (collides(depth)) ++depth;
        EXPECT_EQ(found.depths[n - 1], depth) << expression << " " << n;
      }
      ASSERT_TRUE(found.witness.has_value());
      EXPECT_EQ(found.witness->depth + 1, *found.depths.back());
      EXPECT_TRUE(is_proof(dfa, *found.witness, logic));
    }
  }
}

TEST(Types, AProofNeedsAWordInAndAWordOutOfOneType) {
  const Dfa dfa = compile_expression("(ab)*", "ab");
  EXPECT_TRUE(is_proof(dfa, {"ab", "aab", 1}, Logic::since));
  EXPECT_FALSE(is_proof(dfa, {"ab", "aab", 2}, Logic::since));
  EXPECT_FALSE(is_proof(dfa, {"aab", "ab", 1}, Logic::since));
  EXPECT_FALSE(is_proof(dfa, {"ab", "abab", 0}, Logic::since));
}

TEST(TypeTable, EqualListsGetEqualNumbers) {
  TypeTable table;
  std::map<std::vector<std::uint32_t>, std::uint32_t> truth;
  for (std::uint32_t i = 0; i < 20000; ++i) {
    const std::vector<std::uint32_t> list(i % 5 + 1, i * 2654435761u % 997);
    const std::uint32_t number = table.number(list);
    EXPECT_EQ(number, truth.emplace(list, number).first->second);
  }
  EXPECT_EQ(table.size(), truth.size());
}

// ---- programs and networks

bool in_stair(const std::string& word, std::size_t k) {
  std::string bare;
  for (const char c : word) {
    if (c != 'c') bare += c;
  }
  return bare.find(std::string(k, 'a')) != std::string::npos;
}

TEST(Brasp, StairProgramsAndTheirNetworksMeetTheDefinition) {
  for (std::size_t k = 1; k <= 4; ++k) {
    const BraspProgram program = stair_program(k);
    const HardNetwork network = compile_program(program);
    EXPECT_EQ(program.depth(), k);
    EXPECT_EQ(network.layers.size(), k);
    const Dfa dfa = compile_expression(stair_expression(k), "abc");
    for (const std::string& word : all_words("abc", 6)) {
      const bool truth = in_stair(word, k);
      ASSERT_EQ(dfa.contains(word), truth);
      ASSERT_EQ(run_program(program, word), truth) << word;
      ASSERT_EQ(network.run(word), truth ? 1 : 0) << word;
    }
  }
}

/// "The rightmost earlier letter equal to mine stands right behind an a" at the end of the word:
/// scores that depend on both positions, two heads in one layer, a default that is not 0.
BraspProgram equal_letter_program() {
  enum : std::size_t { a, b, end, after_a, before, answer };
  BraspProgram program;
  program.alphabet = "ab";
  BooleanFormula same;
  same.kind = BooleanFormula::Kind::disjunction;
  same.parts = {conjunction(at_i(a), at_j(a)), conjunction(at_i(b), at_j(b))};
  program.statements = {
      {"after_a", true, at_j(a), constant(true), constant(false)},
      {"equal", true, at_j(after_a), same, negation(at_i(after_a))},
      {"answer", true, conjunction(at_j(before), negation(at_j(end))), constant(true),
       constant(true)},
  };
  return program;
}

bool equal_letter_truth(const std::string& word) {
  if (word.empty()) return true;
  const std::size_t last = word.size() - 1;
  const auto after_a = [&](std::size_t i) { return i > 0 && word[i - 1] == 'a'; };
  for (std::size_t j = last; j-- > 0;) {
    if (word[j] == word[last]) return after_a(j);
  }
  return !after_a(last);
}

TEST(Brasp, ScoresOfBothPositionsCompileToo) {
  const BraspProgram program = equal_letter_program();
  EXPECT_EQ(program.depth(), 3u);
  const HardNetwork network = compile_program(program);
  for (const std::string& word : all_words("ab", 9)) {
    ASSERT_EQ(run_program(program, word), equal_letter_truth(word)) << word;
    ASSERT_EQ(network.run(word), equal_letter_truth(word) ? 1 : 0) << word;
  }
}

TEST(Brasp, ProgramsReadAsText) {
  EXPECT_EQ(stair_program(2).text(),
            "before_2(i) = rightmost j < i [not Q_c(j)] Q_a(j) : 0\n"
            "run_2(i) = (Q_a(i) and before_2(i))\n"
            "answer(i) = rightmost j < i [run_2(j)] 1 : 0\n");
}

}  // namespace
}  // namespace fathom::lab
