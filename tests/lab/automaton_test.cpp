// Expressions, automata and monoids against std::regex, brute force and hand counts.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <regex>
#include <set>

#include "core/error.h"
#include "core/random.h"
#include "lab/hard_attention/automaton.h"
#include "lab/hard_attention/regular_expression.h"
#include "lab/hard_attention/syntactic_monoid.h"
#include "scratch_folder.h"

namespace fathom::lab {
namespace {

void for_all_words(const std::string& alphabet, std::size_t length,
                   const std::function<void(const std::string&)>& visit) {
  std::vector<std::string> words{""};
  for (std::size_t l = 0; l <= length; ++l) {
    std::vector<std::string> longer;
    for (const std::string& word : words) {
      visit(word);
      for (const char c : alphabet) longer.push_back(word + c);
    }
    words = std::move(longer);
  }
}

TEST(Expressions, AgreeWithTheStandardLibrary) {
  for (const char* expression :
       {"(ab)*",         "a*",      "(a|b)*abb", "a?b+",        "(aa|b)*a{2}", "a{1,3}b{0,2}",
        "(a|b){2,}",     "[^a]b*",  "(a*b*)*",   ".a.",         "()",          "(a|)b",
        "((a|b)(a|b))*", "a{0}b",   "[ab]{3}|b", "(a?){4}a{2}", "(|a|b)(|b)",  "a**",
        "(ab?)+?|b",     "[a-b]a+", "[^b-b]{2}"}) {
    const Dfa dfa = compile_expression(expression, "ab");
    std::string standard = expression;
    if (standard == "a**") standard = "a*";
    if (standard == "(ab?)+?|b") standard = "((ab?)+)?|b";
    const std::regex regex(standard);
    for_all_words("ab", 7, [&](const std::string& word) {
      ASSERT_EQ(dfa.contains(word), std::regex_match(word, regex)) << expression << " on " << word;
    });
  }
}

TEST(Expressions, AlphabetIsThatOfTheLettersUnlessGiven) {
  EXPECT_EQ(compile_expression("b(c|a)*", "").alphabet, "abc");
  EXPECT_EQ(compile_expression("a{2,3}", "").alphabet, "a");
  EXPECT_EQ(compile_expression("[b-d]*e", "").alphabet, "bcde");
  EXPECT_EQ(compile_expression("[b\\-d]", "").alphabet, "-bd");
  EXPECT_EQ(compile_expression("[-b]", "").alphabet, "-b");
  EXPECT_EQ(compile_expression("a*", "ab").states(), 2u);
  EXPECT_EQ(compile_expression("a*", "a").states(), 1u);
  const Dfa signs = compile_expression("\\**", "*");
  EXPECT_TRUE(signs.contains("***"));
}

TEST(Expressions, AClassWithoutLettersHoldsNoWord) {
  for_all_words("ab", 4, [&](const std::string& word) {
    EXPECT_FALSE(compile_expression("[]", "ab").contains(word));
    EXPECT_FALSE(compile_expression("a*[]b", "ab").contains(word));
    EXPECT_EQ(compile_expression("[]*", "ab").contains(word), word.empty());
    EXPECT_EQ(compile_expression("[]|ab", "ab").contains(word), word == "ab");
  });
  EXPECT_EQ(compile_expression("[]", "ab").states(), 1u);
}

TEST(Expressions, MalformedOnesGetOneLineWithThePlace) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"(ab", "a '(' without ')' at character 1"},
      {"ab)", "an unmatched ')' at character 3"},
      {"*a", "nothing before '*' at character 1"},
      {"a|*", "nothing before '*' at character 3"},
      {"(+)", "nothing before '+'"},
      {"[ab", "a '[' without ']'"},
      {"[^ab]", "a class that leaves no letter"},
      {"a]", "an unmatched ']'"},
      {"a}", "an unmatched '}'"},
      {"a{", "a '{' that is not"},
      {"a{2", "a '{' that is not"},
      {"a{x}", "a '{' that is not"},
      {"a{3,2}", "least is above its most"},
      {"a{99999999999}", "a repetition above"},
      {"ac", "'c' is not in the alphabet ab at character 2"},
      {"a\\", "nothing after '\\'"},
      {"", "is empty; write ()"},
      {std::string(300, '(') + "a" + std::string(300, ')'), "brackets deep"},
      {"a" + std::string(300, '*'), "repetitions in a row"},
      {std::string(20000, 'a'), "at most 10,000 characters"},
      {"((a{1000}){1000}){1000}", "letters once its repetitions are written out"},
      {"(a|b)*a(a|b){30}", "has 63 letters written out; its automaton grows beyond"},
      {"a\nb", "printable ASCII characters without spaces, unlike character 2"},
      {"\xc3\xa4", "printable ASCII characters without spaces, unlike character 1"},
      {"[b-a]", "a range whose ends are swapped at character 2"},
      {"[a-c]", "'c' is not in the alphabet ab at character 2"},
      {"[a-b", "a '[' without ']'"},
      {"a\\d", "'\\d', but d is no sign"},
      {"[\\w]", "'\\w', but w is no sign"},
  };
  for (const auto& [expression, message] : cases) {
    try {
      compile_expression(expression, "ab");
      FAIL() << expression;
    } catch (const ConfigError& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find(message), std::string::npos) << expression << ": " << what;
      EXPECT_EQ(what.find('\n'), std::string::npos);
      EXPECT_LT(what.size(), 300u);
    }
  }
  for (const char* alphabet : {"aa", "a b", "\xc3\xa9", "abcdefghijklmnopqrstuvwxyz0"}) {
    EXPECT_THROW(compile_expression("a", alphabet), ConfigError) << alphabet;
  }
}

/// States of the minimal automaton by counting what words of up to a length tell apart.
std::size_t nerode_classes(const Dfa& dfa, std::size_t length) {
  std::set<std::vector<bool>> classes;
  for_all_words(dfa.alphabet, length, [&](const std::string& prefix) {
    std::vector<bool> row;
    for_all_words(dfa.alphabet, length,
                  [&](const std::string& suffix) { row.push_back(dfa.contains(prefix + suffix)); });
    classes.insert(row);
  });
  return classes.size();
}

TEST(Automata, TheMinimalOneHasAStatePerNerodeClass) {
  const RandomStream random(3, 5);
  std::uint64_t at = 0;
  for (int trial = 0; trial < 60; ++trial) {
    Dfa dfa;
    dfa.alphabet = "ab";
    const std::size_t states = 2 + random.below(at++, 6);
    for (std::size_t s = 0; s < states; ++s) {
      dfa.accepts.push_back(random.below(at++, 2) == 1);
      for (int a = 0; a < 2; ++a) {
        dfa.next.push_back(static_cast<std::uint32_t>(random.below(at++, states)));
      }
    }
    const Dfa least = minimal(dfa);
    EXPECT_EQ(least.states(), nerode_classes(dfa, 6));
    for_all_words("ab", 7, [&](const std::string& word) {
      ASSERT_EQ(least.contains(word), dfa.contains(word));
    });
    // Minimal automata of one language are equal.
    const Dfa again = minimal(least);
    EXPECT_EQ(again.next, least.next);
    EXPECT_EQ(again.accepts, least.accepts);
  }
}

TEST(Automata, AreReadFromAFileOrRefusedInOneLine) {
  const ScratchFolder folder;
  const auto write = [&](const std::string& text) {
    std::ofstream(folder / "d.toml") << text;
    return folder / "d.toml";
  };
  const std::string good =
      "alphabet = \"ab\"\nstart = \"even\"\naccept = [\"even\"]\n[transitions]\n"
      "even = { a = \"odd\", b = \"even\" }\nodd = { a = \"even\", b = \"odd\" }\n";
  const Dfa parity = read_dfa(write(good));
  EXPECT_TRUE(parity.contains("abba"));
  EXPECT_FALSE(parity.contains("ab"));
  const auto refused = [&](const std::string& text, const std::string& message) {
    try {
      read_dfa(write(text));
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
  };
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  refused(replaced("b = \"odd\"", "b = \"od\""), "names the state 'od'");
  refused(replaced(", b = \"odd\"", ""), "b");
  refused(replaced("b = \"odd\"", "c = \"odd\""), "b");
  refused(replaced("start = \"even\"", "start = \"never\""), "names the state 'never'");
  refused(replaced("accept", "accepts"), "accepts");
  refused(replaced("accept = [\"even\"]\n", ""), "accept is missing");
  refused(replaced("alphabet = \"ab\"", "alphabet = \"aa\""), "twice");
  refused(replaced("alphabet = \"ab\"", "alphabet = \"aa\""), "d.toml:1");
  refused("alphabet = \"ab\"\nstart = \"x\"\naccept = []\n", "transitions is empty");
  refused("nonsense", "d.toml:1");
  EXPECT_THROW(read_dfa(folder / "missing.toml"), DataError);
}

/// Distinct maps of states by all words, found by trying words.
std::size_t maps_of_words(const Dfa& dfa, std::size_t length) {
  std::set<std::vector<std::uint32_t>> maps;
  for_all_words(dfa.alphabet, length, [&](const std::string& word) {
    std::vector<std::uint32_t> map;
    for (std::uint32_t s = 0; s < dfa.states(); ++s) {
      std::uint32_t state = s;
      for (const char c : word) state = dfa.step(state, dfa.alphabet.find(c));
      map.push_back(state);
    }
    maps.insert(map);
  });
  return maps.size();
}

TEST(Monoid, SizesAndStarFreenessByHand) {
  const auto of = [](const char* expression, const char* alphabet) {
    return syntactic_monoid(compile_expression(expression, alphabet));
  };
  EXPECT_EQ(of("(ab)*", "ab").size, 6u);  // 1, a, b, ab, ba, 0
  EXPECT_EQ(of("(ab)*", "ab").star_free, true);
  EXPECT_EQ(of("a*", "ab").size, 2u);  // 1, 0
  EXPECT_EQ(of("a*", "a").size, 1u);
  EXPECT_EQ(of("(aa)*", "a").size, 2u);  // the group of two elements
  EXPECT_EQ(of("(aa)*", "a").star_free, false);
  EXPECT_EQ(of("(aaa)*", "a").size, 3u);
  EXPECT_EQ(of("(aaa)*", "a").star_free, false);
  EXPECT_EQ(of("(b*ab*a)*b*", "ab").star_free, false);
  EXPECT_EQ(of("()", "a").size, 2u);
  for (const char* expression : {"(a|b)*abb", "(aab|b)*", "((a|b)(a|b))*", "(a(ab)*b)*"}) {
    const Dfa dfa = compile_expression(expression, "ab");
    EXPECT_EQ(syntactic_monoid(dfa).size, maps_of_words(dfa, 9)) << expression;
  }
}

TEST(Monoid, EnumerationIsBounded) {
  // (a|b)*a(a|b)^9 has 2^10 states and as many maps and more.
  const Dfa dfa = compile_expression("(a|b)*a(a|b){9}", "ab");
  const SyntacticMonoid some = syntactic_monoid(dfa, {}, 1e5);
  EXPECT_FALSE(some.complete);
  EXPECT_FALSE(some.star_free.has_value());
  EXPECT_THROW(syntactic_monoid(dfa, [] { throw StoppedError("stopped"); }), StoppedError);
}

}  // namespace
}  // namespace fathom::lab
