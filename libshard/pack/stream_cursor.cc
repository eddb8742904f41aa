#include "libshard/pack/stream_cursor.h"

#include "shardpack/error.h"

namespace shardpack {

bool StreamCursor::Read(std::uint64_t offset, std::byte* to, std::uint64_t size) {
  if (damage_) throw *damage_;
  try {
    if (!bytes_ || at_ > offset) {
      bytes_ = ForwardBytes::Open(file_, wrapping_);
      at_ = 0;
    }
    at_ += bytes_->PassOver(offset - at_);
    if (at_ != offset) return false;
    const std::uint64_t got = bytes_->Read(to, size);
    at_ += got;
    return got == size;
  } catch (const Error& e) {
    bytes_.reset();
    if (e.code() == ErrorCode::kBadInput) damage_ = e;
    throw;
  }
}

}  // namespace shardpack
