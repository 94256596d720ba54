// Small text helpers: display width of UTF-8, padding, splitting, closest spelling.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fathom {

enum class Align { left, right };

/// Columns a UTF-8 string takes on a terminal (code points; escape sequences count as zero).
std::size_t display_width(std::string_view text);
std::string pad(std::string_view text, std::size_t width, Align align);
std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
/// Text of unknown origin for use in a message: control characters become '?', cut at `limit`
/// bytes.
std::string printable(std::string_view text, std::size_t limit = 80);
std::string to_lower(std::string_view text);
/// Breaks at spaces so that no line is wider than `width`; keeps existing line breaks.
std::vector<std::string> wrap(std::string_view text, std::size_t width);

/// The candidate a typist most likely meant: at a Damerau-Levenshtein distance of at most a third
/// of the word's length (one edit is always allowed), else one that begins with the word.
std::optional<std::string> closest(std::string_view word,
                                   const std::vector<std::string>& candidates);
/// " Did you mean 'X'?" or "".
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace fathom
