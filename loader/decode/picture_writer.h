// The last pass over a picture: mirror, normalise, convert and lay out, straight into its place in the batch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "shardpack/loader/batch.h"
#include "shardpack/loader/cuda/pixel_math.h"

namespace shardpack::loader {

// Immutable after construction; any thread.
class PictureWriter {
 public:
  PictureWriter(std::uint32_t width, std::uint32_t height, DType dtype, Layout layout, const std::array<float, 3>& mean,
                const std::array<float, 3>& deviation);

  std::size_t picture_bytes() const { return picture_bytes_; }
  std::uint32_t width() const { return width_; }
  std::uint32_t height() const { return height_; }

  // Whether the output is the 8-bit RGB picture itself, so that it can be made in place.
  bool IsCopy(bool flip) const { return dtype_ == DType::kUint8 && layout_ == Layout::kNhwc && !flip; }

  // `rgb`: height rows of width * 3 bytes without gaps. `out`: picture_bytes(), aligned to its type.
  void Write(const std::uint8_t* rgb, bool flip, std::byte* out) const;

 private:
  std::uint32_t width_, height_;
  DType dtype_;
  Layout layout_;
  std::size_t picture_bytes_;
  NormaliseTable table_;
};

}  // namespace shardpack::loader
