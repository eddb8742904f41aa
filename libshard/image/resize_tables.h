// Which source pixels make an output pixel, and with what weight: Pillow's Resample.c.
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

}  // namespace shardpack::image
