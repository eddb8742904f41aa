// The row filters of Encoding::kPixels: PNG's five, on samples of 8 or 16 bits (docs/formats/pixels.md).
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardpack::image {

enum class PixelsFilter : std::uint8_t { kNone = 0, kSub = 1, kUp = 2, kAverage = 3, kPaeth = 4 };
inline constexpr int kPixelsFilters = 5;

// Rows of `count` samples; `channels` is the distance to the neighbour on the left. `above` is the unfiltered row
// above, zeros for the first. Filtered rows are bytes: 16-bit differences are folded (zigzag) and little endian.
void FilterRow(PixelsFilter filter, const std::uint8_t* row, const std::uint8_t* above, std::size_t count,
               std::size_t channels, std::uint8_t* out);
void FilterRow(PixelsFilter filter, const std::uint16_t* row, const std::uint16_t* above, std::size_t count,
               std::size_t channels, std::uint8_t* out);

// The inverse.
void UnfilterRow(PixelsFilter filter, const std::uint8_t* in, const std::uint8_t* above, std::size_t count,
                 std::size_t channels, std::uint8_t* row);
void UnfilterRow(PixelsFilter filter, const std::uint8_t* in, const std::uint16_t* above, std::size_t count,
                 std::size_t channels, std::uint16_t* row);

}  // namespace shardpack::image
