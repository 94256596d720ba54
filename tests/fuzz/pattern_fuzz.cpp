// A regular expression, a line break and a text: the stretches are not empty and make up the text
// again, or an error of one line says why not.
#include <algorithm>
#include <cstdlib>

#include "core/error.h"
#include "core/utf8.h"
#include "tokenizers/pattern.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fathom;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\n'), input.size());
  const std::string expression(input.substr(0, end));
  const std::string_view text = end < input.size() ? input.substr(end + 1) : std::string_view();
  if (find_invalid_utf8(text) != std::string_view::npos) return 0;  // encoders refuse it before
  try {
    std::string whole;
    for (const tokenizers::Stretch& s : tokenizers::Pattern(expression, "fuzz").cut(text)) {
      if (s.text.empty()) std::abort();
      whole += s.text;
    }
    if (whole != text) std::abort();
    const auto literal = tokenizers::Pattern::literal(expression, "fuzz");
    if (literal.replace(text, "") == text && !expression.empty() &&
        text.find(expression) != std::string_view::npos) {
      std::abort();
    }
  } catch (const Error& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
