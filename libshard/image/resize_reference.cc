#include <algorithm>
#include <cassert>
#include <vector>

#include "libshard/image/resize_tables.h"
#include "shardpack/resize.h"

namespace shardpack {
namespace {

using image::FillResizeTable;
using image::kWeightBits;
using image::ResizeTable;

std::uint8_t Clip8(std::int32_t sum) { return static_cast<std::uint8_t>(std::clamp(sum >> kWeightBits, 0, 255)); }

// out[i] = the weighted sum over span i of `in`, whose neighbouring values lie `step` bytes apart.
std::uint8_t WeightedSum(const std::uint8_t* in, std::size_t step, const std::int32_t* weights, std::uint32_t count) {
  std::int32_t sum = 1 << (kWeightBits - 1);
  for (std::uint32_t k = 0; k < count; ++k) sum += in[k * step] * weights[k];
  return Clip8(sum);
}

using Pixels = std::vector<std::uint8_t>;  // rows without gaps

Pixels ResizeHorizontally(PixelView in, const ResizeTable& table) {
  Pixels out;
  for (std::uint32_t y = 0; y < in.height; ++y) {
    for (std::size_t x = 0; x < table.spans.size(); ++x) {
      const std::uint8_t* from = in.data + y * in.stride_bytes + table.spans[x].start * std::size_t{3};
      for (std::size_t c = 0; c < 3; ++c) {
        out.push_back(WeightedSum(from + c, 3, table.WeightsOf(x), table.spans[x].count));
      }
    }
  }
  return out;
}

Pixels ResizeVertically(PixelView in, const ResizeTable& table) {
  Pixels out;
  for (std::size_t y = 0; y < table.spans.size(); ++y) {
    const std::uint8_t* from = in.data + table.spans[y].start * in.stride_bytes;
    for (std::size_t x = 0; x < std::size_t{in.width} * 3; ++x) {
      out.push_back(WeightedSum(from + x, in.stride_bytes, table.WeightsOf(y), table.spans[y].count));
    }
  }
  return out;
}

PixelView ViewOf(const Pixels& pixels, std::uint32_t width, std::uint32_t height) {
  return {pixels.data(), width, height, std::size_t{width} * 3};
}

}  // namespace

void ResizeReference(PixelView source, std::uint32_t width, std::uint32_t height, Resizer::Window window,
                     std::uint8_t* out) {
  assert(window.x + window.width <= width && window.y + window.height <= height);
  ResizeTable columns, rows;
  FillResizeTable(source.width, width, window.x, window.width, 1, columns);
  FillResizeTable(source.height, height, window.y, window.height, 1, rows);
  // An axis of unchanged size gets one weight of 1 a pixel, which copies it: the same as leaving the pass out.
  Pixels result;
  if (image::VerticalFirst(source.width, source.height, width, height)) {
    const Pixels between = ResizeVertically(source, rows);
    result = ResizeHorizontally(ViewOf(between, source.width, window.height), columns);
  } else {
    const Pixels between = ResizeHorizontally(source, columns);
    result = ResizeVertically(ViewOf(between, window.width, source.height), rows);
  }
  std::copy(result.begin(), result.end(), out);
}

}  // namespace shardpack
