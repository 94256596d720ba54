#include "core/utf8.h"

namespace fathom {
namespace {

unsigned byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

bool is_continuation(unsigned byte) {
  return (byte & 0xC0u) == 0x80u;
}

}  // namespace

std::int32_t next_code_point(std::string_view text, std::size_t& at) {
  const unsigned lead = byte_at(text, at);
  if (lead < 0x80) {
    ++at;
    return static_cast<std::int32_t>(lead);
  }
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() - at < length) return -1;
  std::uint32_t code_point = lead & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const unsigned byte = byte_at(text, at + i);
    if (!is_continuation(byte)) return -1;
    code_point = code_point << 6 | (byte & 0x3Fu);
  }
  constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
  if (code_point < kSmallest[length] || surrogate || code_point > 0x10FFFF) return -1;
  at += length;
  return static_cast<std::int32_t>(code_point);
}

std::size_t find_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (next_code_point(text, at) < 0) return at;
  }
  return std::string_view::npos;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    if (next_code_point(text, at) < 0) {
      result += "\xEF\xBF\xBD";
      ++at;
    } else {
      result += text.substr(start, at - start);
    }
  }
  return result;
}

void append_utf8(std::string& text, std::uint32_t c) {
  const auto put = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
    return;
  }
  if (c < 0x800) {
    put(0xC0 | c >> 6);
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
  }
  put(0x80 | (c & 0x3F));
}

std::size_t utf8_boundary(std::string_view text, std::size_t at) {
  if (at >= text.size()) return text.size();
  for (std::size_t back = 0; back < 4 && back <= at; ++back) {
    if (!is_continuation(byte_at(text, at - back))) return at - back;
  }
  return at;  // not UTF-8 at all: any cut will do
}

}  // namespace fathom
