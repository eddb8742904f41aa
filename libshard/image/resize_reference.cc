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

void ResizeRow(const std::uint8_t* in, const ResizeTable& table, std::uint8_t* out) {
  for (std::size_t x = 0; x < table.spans.size(); ++x) {
    const std::uint8_t* from = in + table.spans[x].start * std::size_t{3};
    for (std::size_t c = 0; c < 3; ++c) *out++ = WeightedSum(from + c, 3, table.WeightsOf(x), table.spans[x].count);
  }
}

}  // namespace

void ResizeReference(PixelView source, std::uint32_t width, std::uint32_t height, Resizer::Window window,
                     std::uint8_t* out) {
  assert(window.x + window.width <= width && window.y + window.height <= height);
  ResizeTable columns, rows;
  FillResizeTable(source.width, width, window.x, window.width, 1, columns);
  FillResizeTable(source.height, height, window.y, window.height, 1, rows);
  // An axis of unchanged size gets one weight of 1 a pixel, which copies it: the same as leaving the pass out.
  std::size_t stride = std::size_t{window.width} * 3;
  std::vector<std::uint8_t> narrowed(stride * source.height);
  for (std::uint32_t y = 0; y < source.height; ++y) {
    ResizeRow(source.data + y * source.stride_bytes, columns, narrowed.data() + y * stride);
  }
  for (std::size_t y = 0; y < window.height; ++y) {
    const std::uint8_t* from = narrowed.data() + rows.spans[y].start * stride;
    for (std::size_t x = 0; x < stride; ++x) {
      *out++ = WeightedSum(from + x, stride, rows.WeightsOf(y), rows.spans[y].count);
    }
  }
}

}  // namespace shardpack
