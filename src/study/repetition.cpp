#include "study/repetition.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/counts.h"
#include "core/units.h"

namespace fathom::study {

std::string repetition_note(std::int64_t tokens, std::int64_t text_tokens) {
  const double passes = as_double(tokens) / as_double(std::max<std::int64_t>(text_tokens, 1));
  if (passes <= kHarmlessPasses) return "";
  return fmt::format(
      "training on {} tokens reads the text ({} tokens) {:.0f} times over; past about {:.0f} times "
      "repeated text teaches less than new text (arXiv 2305.16264), so more text would help",
      format_count(as_double(tokens)), format_count(as_double(text_tokens)), passes,
      kHarmlessPasses);
}

}  // namespace fathom::study
