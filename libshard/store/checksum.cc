#include "libshard/store/checksum.h"

// Inlined, so that a short record costs no second call and the constant seed folds away.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace shardpack {

struct Xxh3Stream128::State {
  XXH3_state_t xxh3;
};

Xxh3Stream128::Xxh3Stream128() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh3); }
Xxh3Stream128::Xxh3Stream128(Xxh3Stream128&&) noexcept = default;
Xxh3Stream128& Xxh3Stream128::operator=(Xxh3Stream128&&) noexcept = default;
Xxh3Stream128::~Xxh3Stream128() = default;

void Xxh3Stream128::Add(Bytes bytes) { XXH3_128bits_update(&state_->xxh3, bytes.data(), bytes.size()); }

Digest128 Xxh3Stream128::Finish() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh3);
  return {hash.high64, hash.low64};
}

std::uint64_t Xxh3_64(Bytes bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

Digest128 Xxh3_128(Bytes bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

}  // namespace shardpack
