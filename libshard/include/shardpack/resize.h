// Resizing of 8-bit RGB pictures, bit-equal to Pillow 13's Image.resize(..., BILINEAR) on every SIMD target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace shardpack {

// A view of 8-bit RGB pixels: 3 bytes a pixel, rows `stride_bytes` apart. Owns nothing.
struct PixelView {
  const std::uint8_t* data = nullptr;
  std::uint32_t width = 0, height = 0;
  std::size_t stride_bytes = 0;
};

// Antialiased bilinear (triangle filter whose support grows with the scale), one axis after the other, 8 bits between
// the passes, 22-bit fixed-point coefficients: Pillow's, whose release 13 is followed in which axis goes first. Earlier
// releases run the horizontal pass first where 13 does not, which changes some values by one (see docs/inputs.md). A
// pass whose size does not change is left out, as there.
//
// Resizes the whole `source` to width x height but computes only the window [window_x, window_x + window_width) x
// [window_y, ...) of the result, into `out`, rows of window_width * 3 bytes without gaps. Equal to resizing everything
// and cropping afterwards. Precondition: all sizes > 0 and the window lies inside the result.
//
// Keeps tables and scratch between calls: one Resizer a thread.
class Resizer {
 public:
  struct Window {
    std::uint32_t x = 0, y = 0, width = 0, height = 0;
  };
  Resizer();
  Resizer(Resizer&&) noexcept;
  Resizer& operator=(Resizer&&) noexcept;
  ~Resizer();

  void Resize(PixelView source, std::uint32_t width, std::uint32_t height, Window window, std::uint8_t* out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The same arithmetic in plain C++, for tests.
void ResizeReference(PixelView source, std::uint32_t width, std::uint32_t height, Resizer::Window window,
                     std::uint8_t* out);

}  // namespace shardpack
