#include <fmt/format.h>

#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"
#include "tokenizers/pattern.h"
#include "tokenizers/steps.h"
#include "tokenizers/unicode.h"

namespace fathom::tokenizers {
namespace {

using Json = nlohmann::json;

std::string keep_text(std::string text) {
  return text;
}

bool is_control(std::int32_t c) {
  return c != '\t' && c != '\n' && c != '\r' && is_other(c);
}

struct BertOptions {
  bool clean, chinese, strip, lower;
};

std::string bert_normalise(const std::string& text, const BertOptions& options) {
  std::string result;
  for_each_character(text, [&](std::int32_t c, std::string_view bytes) {
    if (options.clean) {
      if (c <= 0 || c == 0xFFFD || is_control(c)) return;
      if (is_whitespace(c)) {
        result += ' ';
        return;
      }
    }
    const bool apart = options.chinese && is_chinese(c);
    if (apart) result += ' ';
    result += bytes;
    if (apart) result += ' ';
  });
  if (options.strip) {
    result = filter_characters(normal_form(result, NormalForm::nfd),
                               [](std::int32_t c) { return !is_nonspacing_mark(c); });
  }
  return options.lower ? to_lower_case(result) : result;
}

Normaliser make_bert(const Json& spec) {
  const bool lower = spec.value("lowercase", true);
  const auto strip = spec.find("strip_accents");
  const BertOptions options{
      spec.value("clean_text", true), spec.value("handle_chinese_chars", true),
      strip == spec.end() || strip->is_null() ? lower : strip->get<bool>(), lower};
  return [options](const std::string& text) { return bert_normalise(text, options); };
}

Normaliser make_replace(const Json& spec, const std::string& origin) {
  const Json& pattern = spec.at("pattern");
  auto compiled = std::make_shared<Pattern>(
      pattern.contains("Regex") ? Pattern(pattern.at("Regex").get<std::string>(), origin)
                                : Pattern::literal(pattern.at("String"), origin));
  return [compiled, by = spec.at("content").get<std::string>()](const std::string& text) {
    return compiled->replace(text, by);
  };
}

Normaliser make_strip(const Json& spec) {
  const bool left = spec.value("strip_left", true), right = spec.value("strip_right", true);
  return [left, right](const std::string& text) {
    std::size_t begin = text.size(), end = 0, at = 0;
    for_each_character(text, [&](std::int32_t c, std::string_view bytes) {
      if (!is_whitespace(c)) {
        begin = std::min(begin, at);
        end = at + bytes.size();
      }
      at += bytes.size();
    });
    if (!left) begin = 0;
    if (!right) end = text.size();
    return begin < end ? text.substr(begin, end - begin) : std::string();
  };
}

Normaliser form(NormalForm which) {
  return [which](const std::string& text) { return normal_form(text, which); };
}

}  // namespace

Normaliser make_normaliser(const Json& spec, const std::string& origin) {
  if (spec.is_null()) return keep_text;
  const std::string type = spec.at("type");
  if (type == "Sequence") {
    std::vector<Normaliser> steps;
    for (const Json& each : spec.at("normalizers")) steps.push_back(make_normaliser(each, origin));
    return [steps](std::string text) {
      for (const Normaliser& step : steps) text = step(std::move(text));
      return text;
    };
  }
  if (type == "NFC") return form(NormalForm::nfc);
  if (type == "NFD") return form(NormalForm::nfd);
  if (type == "NFKC") return form(NormalForm::nfkc);
  if (type == "NFKD") return form(NormalForm::nfkd);
  if (type == "Lowercase") return [](const std::string& text) { return to_lower_case(text); };
  if (type == "StripAccents") {
    return [](const std::string& text) {
      return filter_characters(text, [](std::int32_t c) { return !is_mark(c); });
    };
  }
  if (type == "Prepend") {
    return [front = spec.at("prepend").get<std::string>()](const std::string& text) {
      return text.empty() ? text : front + text;
    };
  }
  if (type == "Replace") return make_replace(spec, origin);
  if (type == "Strip") return make_strip(spec);
  if (type == "BertNormalizer") return make_bert(spec);
  throw DataError(fmt::format("{}: the normalizer '{}' is not known", origin, printable(type)));
}

}  // namespace fathom::tokenizers
