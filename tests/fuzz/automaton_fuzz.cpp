// Any text either reads as an automaton, whose minimal form accepts the same words, or throws an
// error of one line.
#include "fuzz_input.h"
#include "lab/hard_attention/automaton.h"

namespace {

/// Whether both accept the same words of at most `length` letters that begin with `word`.
bool same(const fathom::lab::Dfa& a, const fathom::lab::Dfa& b, std::string& word, int length) {
  if (a.contains(word) != b.contains(word)) return false;
  if (length == 0) return true;
  for (const char letter : a.alphabet.substr(0, 3)) {
    word.push_back(letter);
    if (!same(a, b, word, length - 1)) return false;
    word.pop_back();
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fathom;
  const FuzzFile file(data, size);
  read_or_refuse([&] {
    const lab::Dfa dfa = lab::read_dfa(file.path());
    const lab::Dfa least = lab::minimal(dfa);
    std::string word;
    if (least.states() > dfa.states() || !same(dfa, least, word, 5)) std::abort();
  });
  return 0;
}
