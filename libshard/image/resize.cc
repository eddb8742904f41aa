#include "shardpack/resize.h"

namespace shardpack {

struct Resizer::Impl {};

Resizer::Resizer() : impl_(std::make_unique<Impl>()) {}
Resizer::Resizer(Resizer&&) noexcept = default;
Resizer& Resizer::operator=(Resizer&&) noexcept = default;
Resizer::~Resizer() = default;

void Resizer::Resize(PixelView source, std::uint32_t width, std::uint32_t height, Window window, std::uint8_t* out) {
  ResizeReference(source, width, height, window, out);
}

}  // namespace shardpack
