// 128-bit content hashes (XXH3, libxxhash): they name contents and catch damage; they do not
// withstand an adversary.
//
// The value depends on the bytes alone, not on how they were cut into calls.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace fathom {

struct Hash128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  bool operator==(const Hash128&) const = default;
  /// 32 lower-case hexadecimal digits, high word first.
  std::string hex() const;
};

class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;

  void add(const void* data, std::size_t bytes);
  void add(std::string_view text) { add(text.data(), text.size()); }
  /// A length before the text, so that {"ab", "c"} and {"a", "bc"} differ.
  void add_field(std::string_view text);
  Hash128 value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Hash128 hash_bytes(std::string_view bytes);

}  // namespace fathom
