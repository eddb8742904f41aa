// The two passes of resizing, for whatever vectors the processor has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libshard/image/resize_tables.h"

namespace shardpack::image {

// A ResizeTable's weights made ready for 16-bit multiply-adds: each 22-bit weight is its high part (weight >> 11, 2048
// at most) and its low part (weight & 2047), whose sums with 8-bit values are exact in 32 bits; and the weights of
// neighbouring source positions lie together in one 32-bit word, the first in the lower half. Sums of integers know no
// order, so every instruction set gives the same result.
struct PairedWeights {
  std::vector<std::uint32_t> words;  // an output position: high, low, high, low, ... of its pairs
  std::uint32_t pairs = 0;           // an output position

  const std::uint32_t* Of(std::size_t i) const { return words.data() + i * 2 * pairs; }
};

inline constexpr int kLowWeightBits = 11;

// Bytes that ResizeRow may read after a span's last pixel and write after its last output pixel. The values do not
// matter.
inline constexpr std::size_t kRowReadSlack = 32;
inline constexpr std::size_t kRowWriteSlack = 16;

// Precondition: table.row_length is even.
void PairWeights(const ResizeTable& table, PairedWeights& paired);

// One row of RGB pixels to as many as the table has spans.
void ResizeRow(const std::uint8_t* row, const ResizeTable& table, const PairedWeights& weights, std::uint8_t* out);

// out[i] for i < count: the sum over `taps` rows, `stride` apart, of row[i] x its weight.
void ResizeColumns(const std::uint8_t* rows, std::size_t stride, std::size_t taps, const std::uint32_t* weights,
                   std::size_t count, std::uint8_t* out);

}  // namespace shardpack::image
