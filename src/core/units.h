// Numbers as people write and read them: "1.3B", "60 GB", "3.2 ms", "124,439,808".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fathom {

/// Parses a positive finite count: "350M", "1.3B", "1e12", "2T"; "12_288" is not accepted. Suffixes
/// K, M, B (or G), T, P, E are powers of 1000. `what` names the value in the error.
double parse_count(std::string_view text, std::string_view what);

/// parse_count for values that must be whole and fit 63 bits ("64K" is 64000).
std::int64_t parse_whole(std::string_view text, std::string_view what);

/// Comma-separated wholes and rising ranges: "1-4,8" is 1, 2, 3, 4, 8.
std::vector<std::int64_t> parse_whole_list(std::string_view text, std::string_view what);

/// A size in bytes: "16GB", "500 MB" or a plain count; suffixes are powers of 1000.
double parse_bytes(std::string_view text, std::string_view what);

/// A share: "0.5%", "0.5 %" or "0.005". Must lie in (0, 1).
double parse_fraction(std::string_view text, std::string_view what);

std::string format_count(double value, int significant = 3);    // 1.30B
std::string format_whole(std::int64_t value);                   // 124,439,808
std::string format_bytes(double bytes);                         // 16.1 GB (powers of 1000)
std::string format_seconds(double seconds);                     // 3.21 ms, 4.5 h
std::string format_percent(double fraction, int decimals = 2);  // +0.31 %
std::string format_significant(double value, int digits);       // 3 digits: 0.00123, 12.3, 1.23e+15
/// base^exponent, whatever its size: 123.4, 1.23e+45, 10^12345.
std::string format_power(double base, double exponent);

}  // namespace fathom
