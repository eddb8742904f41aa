#include "libshard/image/grey_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libshard/image/grey_kernels.cc"
#include "hwy/foreach_target.h"  // compiles this file once more for each target
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace shardpack::image::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void GreyToRgbSimd(const std::uint8_t* grey, std::size_t stride, std::size_t width, std::size_t rows,
                   std::uint8_t* rgb) {
  // Short vectors: rows of tiny pictures are short too, and interleaving wider ones costs more.
  const hn::CappedTag<std::uint8_t, 16> d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t y = 0; y < rows; ++y, grey += stride, rgb += 3 * width) {
    if (width < lanes) {
      for (std::size_t x = 0; x < width; ++x) rgb[3 * x] = rgb[3 * x + 1] = rgb[3 * x + 2] = grey[x];
      continue;
    }
    const auto expand = [&](std::size_t x) {
      const auto values = hn::LoadU(d, grey + x);
      hn::StoreInterleaved3(values, values, values, d, rgb + 3 * x);
    };
    std::size_t x = 0;
    for (; x + lanes <= width; x += lanes) expand(x);
    if (x < width) expand(width - lanes);  // some pixels once more
  }
}

}  // namespace shardpack::image::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shardpack::image {

HWY_EXPORT(GreyToRgbSimd);

void GreyToRgb(const std::uint8_t* grey, std::size_t stride, std::size_t width, std::size_t rows, std::uint8_t* rgb) {
  HWY_DYNAMIC_DISPATCH(GreyToRgbSimd)(grey, stride, width, rows, rgb);
}

}  // namespace shardpack::image
#endif  // HWY_ONCE
