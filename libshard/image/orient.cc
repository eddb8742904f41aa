#include "libshard/image/orient.h"

#include <cassert>
#include <cstddef>

namespace shardpack::image {
namespace {

// Where pixel (0, 0) of the upright picture lies in the stored one, and the way to its right and lower neighbours
// there.
struct Walk {
  std::ptrdiff_t start, right, down;
};

Walk WalkOf(Orientation orientation, std::ptrdiff_t width, std::ptrdiff_t height) {
  std::ptrdiff_t last_column = width - 1, last_row = (height - 1) * width;
  switch (orientation) {
    case 2:
      return {last_column, -1, width};
    case 3:
      return {last_row + last_column, -1, -width};
    case 4:
      return {last_row, 1, -width};
    case 5:
      return {0, width, 1};
    case 6:
      return {last_row, -width, 1};
    case 7:
      return {last_row + last_column, -width, -1};
    case 8:
      return {last_column, width, -1};
    default:
      return {0, 1, width};
  }
}

}  // namespace

void Orient(const std::uint8_t* stored, std::uint32_t width, std::uint32_t height, Orientation orientation,
            std::uint8_t* upright) {
  assert(width > 0 && height > 0);
  Walk walk = WalkOf(orientation, width, height);
  std::ptrdiff_t out_width = SwapsAxes(orientation) ? height : width;
  std::ptrdiff_t out_height = SwapsAxes(orientation) ? width : height;
  for (std::ptrdiff_t y = 0; y < out_height; ++y) {
    const std::uint8_t* from = stored + (walk.start + y * walk.down) * 3;
    for (std::ptrdiff_t x = 0; x < out_width; ++x, from += walk.right * 3, upright += 3) {
      upright[0] = from[0];
      upright[1] = from[1];
      upright[2] = from[2];
    }
  }
}

}  // namespace shardpack::image
