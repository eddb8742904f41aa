// Which source pixels make an output pixel, with what weight, and which axis goes first: as Pillow has it.
#pragma once

#include <cstdint>
#include <vector>

namespace shardpack::image {

inline constexpr int kWeightBits =
    22;  // Pillow's PRECISION_BITS: what 32 bits leave for 8-bit values with room for a sum

// Weights for output positions [first, first + count) of one axis.
struct ResizeTable {
  struct Span {
    std::uint32_t start, count;  // of source positions
  };
  std::vector<Span> spans;
  std::vector<std::int32_t> weights;  // `row_length` an output position; those past a span's count are 0
  std::uint32_t row_length = 0;

  const std::int32_t* WeightsOf(std::size_t i) const { return weights.data() + i * row_length; }
};

// Fills `table`, keeping its capacity. `granule`: row_length is rounded up to a multiple of it.
// Precondition: sizes > 0, first + count <= out_size.
void FillResizeTable(std::uint32_t in_size, std::uint32_t out_size, std::uint32_t first, std::uint32_t count,
                     std::uint32_t granule, ResizeTable& table);

// Whether the vertical pass runs first. The two orders differ by one grey level at most, as 8 bits are kept in between.
// Pillow 13.0's rule, found by comparing both orders with its results at thousands of sizes. Releases before it always
// run the horizontal pass first, but 12.2 and 12.3 where a picture more than 100 times as high as wide gets less high.
bool VerticalFirst(std::uint32_t in_width, std::uint32_t in_height, std::uint32_t out_width, std::uint32_t out_height);

}  // namespace shardpack::image
