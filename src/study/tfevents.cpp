#include "study/tfevents.h"

#include <array>
#include <bit>
#include <cstring>

#include "core/counts.h"

namespace fathom::study {
namespace {

static_assert(std::endian::native == std::endian::little, "event files are little-endian");

std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82f63b78u : 0u);
    table[i] = crc;
  }
  return table;
}

std::uint32_t masked(std::uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

template <class Value>
void append(std::string& out, Value value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

void varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

// Protobuf fields: key = number << 3 | wire type (0 varint, 1 eight bytes, 2 length, 5 four bytes).
void field(std::string& out, int number, double value) {
  varint(out, as_size(number) << 3 | 1);
  append(out, value);
}
void field(std::string& out, int number, float value) {
  varint(out, as_size(number) << 3 | 5);
  append(out, value);
}
void field(std::string& out, int number, std::int64_t value) {
  varint(out, as_size(number) << 3);
  varint(out, as_size(value));
}
void field(std::string& out, int number, const std::string& value) {
  varint(out, as_size(number) << 3 | 2);
  varint(out, value.size());
  out += value;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static const auto table = make_table();
  std::uint32_t crc = 0xffffffffu;
  for (const char byte : bytes) {
    crc = table[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ (crc >> 8);
  }
  return ~crc;
}

EventFile::EventFile(double wall_time) {
  std::string event;
  field(event, 1, wall_time);
  field(event, 3, std::string("brain.Event:2"));
  record(event);
}

void EventFile::scalar(const std::string& tag, std::int64_t step, double value, double wall_time) {
  std::string entry;
  field(entry, 1, tag);
  field(entry, 2, static_cast<float>(value));
  std::string summary;
  field(summary, 1, entry);
  std::string event;
  field(event, 1, wall_time);
  field(event, 2, step);
  field(event, 5, summary);
  record(event);
}

void EventFile::record(const std::string& event) {
  std::string length;
  append(length, as_size(event.size()));
  bytes_ += length;
  append(bytes_, masked(crc32c(length)));
  bytes_ += event;
  append(bytes_, masked(crc32c(event)));
}

}  // namespace fathom::study
