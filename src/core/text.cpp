#include "core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/utf8.h"

namespace fathom {
namespace {

/// Optimal-string-alignment distance: insert, delete, replace, swap neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  bool escape = false;
  for (const unsigned char byte : text) {
    if (escape) {
      if (std::isalpha(byte)) escape = false;
    } else if (byte == 0x1b) {
      escape = true;
    } else if ((byte & 0xC0) != 0x80) {  // not a UTF-8 continuation byte
      ++width;
    }
  }
  return width;
}

std::string pad(std::string_view text, std::size_t width, Align align) {
  const std::size_t have = display_width(text);
  const std::string fill(have < width ? width - have : 0, ' ');
  return align == Align::left ? std::string(text) + fill : fill + std::string(text);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string result(text.substr(0, utf8_boundary(text, limit)));
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto byte = static_cast<unsigned char>(result[i]);
    // C1, too: U+0080 to U+009F are C2 80 to C2 9F, and some terminals treat U+009B as ESC [.
    const bool c1 = i > 0 && byte >= 0x80 && byte < 0xA0 && result[i - 1] == '\xC2';
    if (c1) result[i - 1] = '?';
    if (c1 || byte < 0x20 || byte == 0x7f) result[i] = '?';
  }
  return text.size() > limit ? result + "..." : result;
}

std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& letter : lower) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return lower;
}

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  for (const std::string& paragraph : split(text, '\n')) {
    std::string line;
    std::vector<std::string> words;
    for (const std::string& word : split(paragraph, ' ')) {
      if (word.starts_with('%') && !words.empty()) {
        words.back() += " " + word;  // "16 %" stays together
      } else {
        words.push_back(word);
      }
    }
    for (const std::string& word : words) {
      if (!line.empty() && display_width(line) + 1 + display_width(word) > width) {
        lines.push_back(line);
        line.clear();
      }
      if (!line.empty()) line += ' ';
      line += word;
    }
    lines.push_back(line);
  }
  return lines;
}

std::optional<std::string> closest(std::string_view word,
                                   const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongest = 100;  // the cost is the product of both lengths
  std::optional<std::string> best;
  if (word.size() > kLongest) return best;
  const std::string wanted = to_lower(word);
  std::size_t best_distance = std::max<std::size_t>(1, wanted.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(wanted, to_lower(candidate));
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  constexpr std::size_t kTellingLetters = 3;
  if (best || wanted.size() < kTellingLetters) return best;
  for (const std::string& candidate : candidates) {
    if (to_lower(candidate).starts_with(wanted)) return candidate;
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const auto best = closest(word, candidates);
  return best ? fmt::format(" Did you mean '{}'?", *best) : "";
}

}  // namespace fathom
