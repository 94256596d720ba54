#include "core/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/text.h"

namespace fathom {
namespace {

struct Suffix {
  char letter;
  double factor;
};
constexpr std::array<Suffix, 7> kSuffixes{
    {{'K', 1e3}, {'M', 1e6}, {'B', 1e9}, {'G', 1e9}, {'T', 1e12}, {'P', 1e15}, {'E', 1e18}}};

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// Reads a leading decimal number; returns the unread rest.
std::string_view read_number(std::string_view text, double& value, std::string_view what,
                             std::string_view whole_text) {
  const char* begin = text.data();
  const char* end = begin + text.size();
  auto [rest, error] = std::from_chars(begin, end, value);
  if (error != std::errc{} || !std::isfinite(value)) {
    throw ConfigError(
        fmt::format("{} '{}' is not a number; write it like 1.3B, 350M or 1e12", what, whole_text));
  }
  return {rest, static_cast<std::size_t>(end - rest)};
}

void require_positive(double value, std::string_view what, std::string_view text) {
  if (!(value > 0)) {
    throw ConfigError(fmt::format("{} '{}' must be greater than zero", what, text));
  }
}

}  // namespace

double parse_count(std::string_view text, std::string_view what) {
  const std::string_view trimmed = trim(text);
  double value = 0;
  const std::string_view suffix = trim(read_number(trimmed, value, what, text));
  if (suffix.size() > 1) {
    throw ConfigError(
        fmt::format("{} '{}': unknown suffix '{}'; use K, M, B, T, P or E", what, text, suffix));
  }
  if (suffix.size() == 1) {
    const char letter = static_cast<char>(std::toupper(static_cast<unsigned char>(suffix[0])));
    double factor = 0;
    for (const Suffix& known : kSuffixes) {
      if (known.letter == letter) factor = known.factor;
    }
    if (factor == 0) {
      throw ConfigError(
          fmt::format("{} '{}': unknown suffix '{}'; use K, M, B, T, P or E", what, text, suffix));
    }
    value *= factor;
  }
  require_positive(value, what, text);
  return value;
}

std::int64_t parse_whole(std::string_view text, std::string_view what) {
  const double value = parse_count(text, what);
  if (value != std::floor(value) || value > 9.0e18) {
    throw ConfigError(fmt::format("{} '{}' must be a whole number below 9e18", what, text));
  }
  return static_cast<std::int64_t>(value);
}

std::vector<std::int64_t> parse_whole_list(std::string_view text, std::string_view what) {
  constexpr std::int64_t kLongestRange = 1000;
  std::vector<std::int64_t> values;
  for (const std::string& part : split(text, ',')) {
    const std::size_t dash = part.find('-');
    const std::int64_t first = parse_whole(part.substr(0, dash), what);
    const std::int64_t last =
        dash == std::string::npos ? first : parse_whole(part.substr(dash + 1), what);
    if (last < first || last - first > kLongestRange) {
      throw ConfigError(
          fmt::format("{} '{}' is not a rising range of at most {}", what, part, kLongestRange));
    }
    for (std::int64_t value = first; value <= last; ++value) values.push_back(value);
  }
  return values;
}

double parse_bytes(std::string_view text, std::string_view what) {
  std::string_view count = trim(text);
  if (count.ends_with('B') || count.ends_with('b')) count.remove_suffix(1);
  return parse_count(count, what);
}

double parse_fraction(std::string_view text, std::string_view what) {
  const std::string_view trimmed = trim(text);
  double value = 0;
  const std::string_view suffix = trim(read_number(trimmed, value, what, text));
  if (suffix == "%") {
    value /= 100;
  } else if (!suffix.empty()) {
    throw ConfigError(fmt::format("{} '{}': write a share like 0.5% or 0.005", what, text));
  }
  if (!(value > 0 && value < 1)) {
    throw ConfigError(fmt::format("{} '{}' must lie between 0 and 1 (or 0% and 100%)", what, text));
  }
  return value;
}

std::string format_significant(double value, int digits) {
  if (value == 0) return "0";
  if (!std::isfinite(value)) return fmt::format("{}", value);  // it has no exponent
  int exponent = static_cast<int>(std::floor(std::log10(std::fabs(value))));
  // 9.997 with three digits is 10.0: round before counting the digits in front of the point.
  const double step = std::pow(10.0, exponent - digits + 1);
  if (std::round(std::fabs(value) / step) * step >= std::pow(10.0, exponent + 1)) ++exponent;
  if (exponent < -4 || exponent >= 7) return fmt::format("{:.{}e}", value, digits - 1);
  return fmt::format("{:.{}f}", value, std::max(0, digits - 1 - exponent));
}

std::string format_count(double value, int significant) {
  struct Scale {
    double factor;
    const char* suffix;
  };
  constexpr std::array<Scale, 5> kScales{
      {{1e15, "P"}, {1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "K"}}};
  if (value >= 1e18) return fmt::format("{:.{}e}", value, significant - 1);
  for (const Scale& scale : kScales) {
    // 999.6K reads better as 1.00M: compare after rounding to the printed digits.
    if (value >= scale.factor * 0.9995) {
      return format_significant(value / scale.factor, significant) + scale.suffix;
    }
  }
  return format_significant(value, significant);
}

std::string format_whole(std::int64_t value) {
  std::string digits = std::to_string(value < 0 ? -value : value);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return value < 0 ? "-" + digits : digits;
}

std::string format_bytes(double bytes) {
  constexpr std::array<const char*, 7> kUnits{"B", "KB", "MB", "GB", "TB", "PB", "EB"};
  std::size_t unit = 0;
  while (bytes >= 999.5 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  return fmt::format("{} {}", format_significant(bytes, 3), kUnits[unit]);
}

std::string format_seconds(double seconds) {
  if (seconds < 1e-3) return fmt::format("{} us", format_significant(seconds * 1e6, 3));
  if (seconds < 1) return fmt::format("{} ms", format_significant(seconds * 1e3, 3));
  if (seconds < 120) return fmt::format("{} s", format_significant(seconds, 3));
  if (seconds < 7200) return fmt::format("{} min", format_significant(seconds / 60, 3));
  if (seconds < 172800) return fmt::format("{} h", format_significant(seconds / 3600, 3));
  if (seconds < 3.156e7 * 2) return fmt::format("{} days", format_significant(seconds / 86400, 3));
  return fmt::format("{} years", format_significant(seconds / 3.156e7, 3));
}

std::string format_percent(double fraction, int decimals) {
  return fmt::format("{:+.{}f} %", fraction * 100, decimals);
}

std::string format_power(double base, double exponent) {
  const double digits = exponent * std::log10(base);
  if (digits < 6) return format_significant(std::pow(10.0, digits), 4);
  if (digits < 300) return fmt::format("{:.3g}", std::pow(10.0, digits));
  return fmt::format("10^{}", format_significant(digits, 5));
}

}  // namespace fathom
