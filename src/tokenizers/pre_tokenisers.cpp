#include <fmt/format.h>

#include <array>
#include <map>

#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"
#include "tokenizers/pattern.h"
#include "tokenizers/steps.h"
#include "tokenizers/unicode.h"

namespace fathom::tokenizers {
namespace {

using Json = nlohmann::json;

enum class Behaviour { removed, isolated, merged_with_previous, merged_with_next, contiguous };

Behaviour behaviour_named(const std::string& name, const std::string& origin) {
  if (name == "Removed") return Behaviour::removed;
  if (name == "Isolated") return Behaviour::isolated;
  if (name == "MergedWithPrevious") return Behaviour::merged_with_previous;
  if (name == "MergedWithNext") return Behaviour::merged_with_next;
  if (name == "Contiguous") return Behaviour::contiguous;
  throw DataError(fmt::format("{}: the behavior '{}' is not known", origin, printable(name)));
}

/// Joins stretches into pieces: what becomes of a match.
std::vector<std::string> join_stretches(const std::vector<Stretch>& stretches,
                                        Behaviour behaviour) {
  std::vector<std::string> pieces;
  bool previous = false, fresh = true;
  for (const Stretch& s : stretches) {
    switch (behaviour) {
      case Behaviour::removed:
        if (!s.match) pieces.emplace_back(s.text);
        break;
      case Behaviour::isolated:
        pieces.emplace_back(s.text);
        break;
      case Behaviour::merged_with_previous:
        if (s.match && !fresh && !previous) {
          pieces.back() += s.text;
        } else {
          pieces.emplace_back(s.text);
        }
        break;
      case Behaviour::merged_with_next:
        if (!s.match && !fresh && previous) {
          pieces.back() += s.text;
        } else {
          pieces.emplace_back(s.text);
        }
        break;
      case Behaviour::contiguous:
        if (!fresh && s.match == previous) {
          pieces.back() += s.text;
        } else {
          pieces.emplace_back(s.text);
        }
        break;
    }
    previous = s.match;
    fresh = false;
  }
  return pieces;
}

/// Applies `cut` to every piece; the first part of a piece inherits its `first`.
template <class Cut>
void cut_all(std::vector<Piece>& pieces, const Cut& cut) {
  std::vector<Piece> result;
  for (const Piece& piece : pieces) {
    bool first = piece.first;
    for (std::string& text : cut(piece.text)) {
      if (text.empty()) continue;
      result.push_back({std::move(text), first});
      first = false;
    }
  }
  pieces = std::move(result);
}

/// Each character that `test` accepts is a match of its own.
std::vector<Stretch> by_character(std::string_view text, bool (*test)(std::int32_t)) {
  std::vector<Stretch> stretches;
  std::size_t at = 0;
  for_each_character(text, [&](std::int32_t c, std::string_view bytes) {
    const bool match = test(c);
    if (!match && !stretches.empty() && !stretches.back().match) {
      const std::size_t size = stretches.back().text.size();
      stretches.back().text = text.substr(at - size, size + bytes.size());
    } else {
      stretches.push_back({text.substr(at, bytes.size()), match});
    }
    at += bytes.size();
  });
  return stretches;
}

PreTokeniser by_class(bool (*test)(std::int32_t), Behaviour behaviour) {
  return [test, behaviour](std::vector<Piece>& pieces) {
    cut_all(pieces, [&](const std::string& text) {
      return join_stretches(by_character(text, test), behaviour);
    });
  };
}

PreTokeniser by_pattern(const std::shared_ptr<Pattern>& pattern, Behaviour behaviour, bool invert) {
  return [pattern, behaviour, invert](std::vector<Piece>& pieces) {
    cut_all(pieces, [&](const std::string& text) {
      std::vector<Stretch> stretches = pattern->cut(text);
      if (invert) {
        for (Stretch& s : stretches) s.match = !s.match;
      }
      return join_stretches(stretches, behaviour);
    });
  };
}

PreTokeniser make_split(const Json& spec, const std::string& origin) {
  const Json& pattern = spec.at("pattern");
  auto compiled = std::make_shared<Pattern>(
      pattern.contains("Regex") ? Pattern(pattern.at("Regex").get<std::string>(), origin)
                                : Pattern::literal(pattern.at("String"), origin));
  return by_pattern(compiled, behaviour_named(spec.at("behavior"), origin),
                    spec.value("invert", false));
}

PreTokeniser make_byte_level(const Json& spec, const std::string& origin) {
  std::shared_ptr<Pattern> pattern;
  if (spec.value("use_regex", true)) pattern = std::make_shared<Pattern>(kGpt2Pattern, origin);
  const bool prefix = spec.value("add_prefix_space", true);
  return [pattern, prefix](std::vector<Piece>& pieces) {
    if (prefix) {
      for (Piece& piece : pieces) {
        if (!piece.text.starts_with(' ')) piece.text.insert(0, " ");
      }
    }
    if (pattern) by_pattern(pattern, Behaviour::isolated, false)(pieces);
    for (Piece& piece : pieces) {
      std::string characters;
      for (const char c : piece.text) characters += byte_character(static_cast<unsigned char>(c));
      piece.text = std::move(characters);
    }
  };
}

PreTokeniser make_metaspace(const Json& spec, const std::string& origin) {
  const std::string mark = spec.value("replacement", std::string(kBlankMark));
  const std::string scheme = spec.value(
      "prepend_scheme", std::string(spec.value("add_prefix_space", true) ? "always" : "never"));
  auto blank = std::make_shared<Pattern>(Pattern::literal(" ", origin));
  auto marks = std::make_shared<Pattern>(Pattern::literal(mark, origin));
  const bool split = spec.value("split", true);
  return [=](std::vector<Piece>& pieces) {
    for (Piece& piece : pieces) {
      piece.text = blank->replace(piece.text, mark);
      const bool wanted = scheme == "always" || (scheme == "first" && piece.first);
      if (wanted && !piece.text.starts_with(mark)) piece.text.insert(0, mark);
    }
    if (split) by_pattern(marks, Behaviour::merged_with_next, false)(pieces);
  };
}

PreTokeniser in_sequence(std::vector<PreTokeniser> steps) {
  return [steps = std::move(steps)](std::vector<Piece>& pieces) {
    for (const PreTokeniser& step : steps) step(pieces);
  };
}

}  // namespace

PreTokeniser make_pre_tokeniser(const Json& spec, const std::string& origin) {
  if (spec.is_null()) return [](std::vector<Piece>&) {};
  const std::string type = spec.at("type");
  if (type == "Sequence") {
    std::vector<PreTokeniser> steps;
    for (const Json& each : spec.at("pretokenizers")) {
      steps.push_back(make_pre_tokeniser(each, origin));
    }
    return in_sequence(std::move(steps));
  }
  if (type == "ByteLevel") return make_byte_level(spec, origin);
  if (type == "Split") return make_split(spec, origin);
  if (type == "Metaspace") return make_metaspace(spec, origin);
  if (type == "Digits") {
    return by_class(is_number, spec.value("individual_digits", false) ? Behaviour::isolated
                                                                      : Behaviour::contiguous);
  }
  if (type == "Punctuation") {
    return by_class(is_punctuation,
                    behaviour_named(spec.value("behavior", std::string("Isolated")), origin));
  }
  if (type == "WhitespaceSplit") return by_class(is_whitespace, Behaviour::removed);
  if (type == "Whitespace") {
    return by_pattern(std::make_shared<Pattern>(R"(\w+|[^\w\s]+)", origin), Behaviour::removed,
                      true);
  }
  if (type == "BertPreTokenizer") {
    return in_sequence({by_class(is_whitespace, Behaviour::removed),
                        by_class(is_punctuation, Behaviour::isolated)});
  }
  throw DataError(fmt::format("{}: the pre-tokenizer '{}' is not known", origin, printable(type)));
}

namespace {

/// Printable bytes stand for themselves, the others for the characters from U+0100 on.
struct ByteAlphabet {
  std::array<std::string, 256> characters;
  std::map<std::int32_t, char> bytes;

  ByteAlphabet() {
    std::uint32_t next = 256;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool printable_byte =
          (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      const std::uint32_t c = printable_byte ? byte : next++;
      append_utf8(characters[byte], c);
      bytes[static_cast<std::int32_t>(c)] = static_cast<char>(byte);
    }
  }
};

const ByteAlphabet& alphabet() {
  static const ByteAlphabet table;
  return table;
}

}  // namespace

const std::string& byte_character(unsigned char byte) {
  return alphabet().characters[byte];
}

std::string bytes_of_characters(std::string_view text) {
  std::string bytes;
  for_each_character(text, [&](std::int32_t c, std::string_view raw) {
    const auto found = alphabet().bytes.find(c);
    if (found == alphabet().bytes.end()) {
      bytes += raw;
    } else {
      bytes += found->second;
    }
  });
  return bytes;
}

}  // namespace fathom::tokenizers
