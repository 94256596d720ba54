// Files that are nearly right: mutations that know the grammar, so that they get past the parser.
//
// What carries a checksum loses it first (now and then it stays): the reader behind it is what is
// to be tried. The same generator state gives the same file.
#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace fathom::attack {

enum class Grammar : std::uint8_t { json, json_lines, toml, csv, safetensors, bytes };

using Random = std::mt19937_64;

/// The text with one to four mutations.
std::string mutate(const std::string& text, Grammar grammar, Random& random);

/// One bit flipped, or (one time in eight) the end cut off. `what` says which, for the table.
std::string damage(const std::string& bytes, Random& random, std::string& what);

}  // namespace fathom::attack
