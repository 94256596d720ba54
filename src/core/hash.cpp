#include "core/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <new>

namespace fathom {
namespace {

Hash128 from_xxh(XXH128_hash_t hash) {
  return {hash.low64, hash.high64};
}

}  // namespace

struct Hasher::State {
  XXH3_state_t* xxh = XXH3_createState();
  State() {
    if (xxh == nullptr) throw std::bad_alloc();
    XXH3_128bits_reset(xxh);
  }
  ~State() { XXH3_freeState(xxh); }
};

Hasher::Hasher() : state_(std::make_unique<State>()) {}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

std::string Hash128::hex() const {
  return fmt::format("{:016x}{:016x}", high, low);
}

void Hasher::add(const void* data, std::size_t bytes) {
  if (bytes > 0) XXH3_128bits_update(state_->xxh, data, bytes);
}

void Hasher::add_field(std::string_view text) {
  const std::uint64_t size = text.size();
  add(&size, sizeof size);
  add(text);
}

Hash128 Hasher::value() const {
  return from_xxh(XXH3_128bits_digest(state_->xxh));
}

Hash128 hash_bytes(std::string_view bytes) {
  return from_xxh(XXH3_128bits(bytes.data(), bytes.size()));
}

}  // namespace fathom
