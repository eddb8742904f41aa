#include "libshard/image/resize_kernels.h"

#include <algorithm>
#include <cassert>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libshard/image/resize_kernels.cc"
#include "hwy/foreach_target.h"  // compiles this file once more for each target
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace shardpack::image::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR  // no vectors at all

std::uint8_t WeightedSum(const std::uint8_t* in, std::size_t step, std::size_t taps, const std::uint32_t* words) {
  std::int32_t high = 0, low = 0;
  for (std::size_t tap = 0; tap < taps; ++tap) {
    int shift = tap % 2 * 16;
    high += in[tap * step] * static_cast<std::int32_t>(words[tap / 2 * 2] >> shift & 0xffff);
    low += in[tap * step] * static_cast<std::int32_t>(words[tap / 2 * 2 + 1] >> shift & 0xffff);
  }
  std::int32_t sum = (high << kLowWeightBits) + low + (1 << (kWeightBits - 1));
  return static_cast<std::uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

void ResizeRowSimd(const std::uint8_t* row, const ResizeTable& table, const PairedWeights& weights, std::uint8_t* out) {
  for (std::size_t x = 0; x < table.spans.size(); ++x) {
    const ResizeTable::Span& span = table.spans[x];
    for (std::size_t c = 0; c < 3; ++c) {
      *out++ = WeightedSum(row + span.start * std::size_t{3} + c, 3, span.count, weights.Of(x));
    }
  }
}

void ResizeColumnsSimd(const std::uint8_t* rows, std::size_t stride, std::size_t taps, const std::uint32_t* weights,
                       std::size_t count, std::uint8_t* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = WeightedSum(rows + i, stride, taps, weights);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

// Sums of the high and the low parts of the weights.
template <class D32>
struct Sums {
  using V = hn::VFromD<D32>;
  V high0, high1, low0, low1;  // each in two halves: how products are shared out is the instruction set's affair

  explicit Sums(D32 d) : high0(hn::Zero(d)), high1(hn::Zero(d)), low0(hn::Zero(d)), low1(hn::Zero(d)) {}

  // `values`: pairs of 16-bit values, one pair a lane of 32 bits; `words`: their weights.
  template <class V16>
  HWY_INLINE void Add(D32 d, V16 values, const std::uint32_t* words) {
    const hn::RebindToUnsigned<D32> du;
    const hn::Repartition<std::int16_t, D32> d16;
    high0 = hn::ReorderWidenMulAccumulate(d, values, hn::BitCast(d16, hn::Set(du, words[0])), high0, high1);
    low0 = hn::ReorderWidenMulAccumulate(d, values, hn::BitCast(d16, hn::Set(du, words[1])), low0, low1);
  }

  // Rounded and shifted; DemoteTo clips to 8 bits.
  HWY_INLINE V Total(D32 d) const {
    V high = hn::ShiftLeft<kLowWeightBits>(hn::RearrangeToOddPlusEven(high0, high1));
    V low = hn::RearrangeToOddPlusEven(low0, low1);
    return hn::ShiftRight<kWeightBits>(hn::Add(hn::Add(high, low), hn::Set(d, 1 << (kWeightBits - 1))));
  }
};

void ResizeRowSimd(const std::uint8_t* row, const ResizeTable& table, const PairedWeights& weights, std::uint8_t* out) {
  const hn::FixedTag<std::uint8_t, 16> d8;
  const hn::FixedTag<std::int16_t, 8> d16;
  const hn::FixedTag<std::int32_t, 4> d32;
  const hn::FixedTag<std::uint8_t, 4> d_out;
  // Two neighbouring pixels to (r0, r1), (g0, g1), (b0, b1), (0, 0) of 16 bits each.
  alignas(16) static constexpr std::uint8_t kPattern[16] = {0, 0x80, 3, 0x80, 1,    0x80, 4,    0x80,
                                                            2, 0x80, 5, 0x80, 0x80, 0x80, 0x80, 0x80};
  const auto pattern = hn::Load(d8, kPattern);
  const std::uint32_t* words = weights.words.data();
  for (const ResizeTable::Span& span : table.spans) {
    const std::uint8_t* from = row + span.start * std::size_t{3};
    Sums<decltype(d32)> sums(d32);
    // Pairs past the span have weight 0 and may lie far behind the row's end: they are not read.
    const std::uint32_t used = (span.count + 1) / 2;
    for (std::uint32_t i = 0; i < used; ++i) {
      sums.Add(d32, hn::BitCast(d16, hn::TableLookupBytesOr0(hn::LoadU(d8, from + i * 6), pattern)), words + i * 2);
    }
    hn::StoreU(hn::DemoteTo(d_out, sums.Total(d32)), d_out, out);
    out += 3;
    words += weights.pairs * 2;
  }
}

template <class D32>
HWY_INLINE void ResizeColumnsAt(D32 d32, const std::uint8_t* rows, std::size_t stride, std::size_t taps,
                                const std::uint32_t* weights, std::uint8_t* out) {
  const hn::RebindToUnsigned<D32> du32;
  const hn::Repartition<std::int16_t, D32> d16;
  const hn::Rebind<std::uint8_t, D32> d8;
  Sums<D32> sums(d32);
  for (std::size_t tap = 0; tap < taps; tap += 2, rows += 2 * stride, weights += 2) {
    auto values = hn::PromoteTo(du32, hn::LoadU(d8, rows));
    if (tap + 1 < taps) {
      values = hn::Or(values, hn::ShiftLeft<16>(hn::PromoteTo(du32, hn::LoadU(d8, rows + stride))));
    }
    sums.Add(d32, hn::BitCast(d16, values), weights);
  }
  hn::StoreU(hn::DemoteTo(d8, sums.Total(d32)), d8, out);
}

void ResizeColumnsSimd(const std::uint8_t* rows, std::size_t stride, std::size_t taps, const std::uint32_t* weights,
                       std::size_t count, std::uint8_t* out) {
  const hn::ScalableTag<std::int32_t> d32;
  const std::size_t lanes = hn::Lanes(d32);
  if (count < lanes) {
    const hn::CappedTag<std::int32_t, 1> one;
    for (std::size_t i = 0; i < count; ++i) ResizeColumnsAt(one, rows + i, stride, taps, weights, out + i);
    return;
  }
  for (std::size_t i = 0; i < count; i += lanes) {
    std::size_t at = std::min(i, count - lanes);  // the last vector overlaps its neighbour
    ResizeColumnsAt(d32, rows + at, stride, taps, weights, out + at);
  }
}

#endif  // HWY_SCALAR

}  // namespace shardpack::image::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shardpack::image {

HWY_EXPORT(ResizeRowSimd);
HWY_EXPORT(ResizeColumnsSimd);

void PairWeights(const ResizeTable& table, PairedWeights& paired) {
  assert(table.row_length % 2 == 0);
  constexpr std::uint32_t kLowMask = (1u << kLowWeightBits) - 1;
  paired.pairs = table.row_length / 2;
  paired.words.resize(table.weights.size());
  for (std::size_t i = 0; i < table.weights.size(); i += 2) {
    auto first = static_cast<std::uint32_t>(table.weights[i]),
         second = static_cast<std::uint32_t>(table.weights[i + 1]);
    paired.words[i] = first >> kLowWeightBits | second >> kLowWeightBits << 16;
    paired.words[i + 1] = (first & kLowMask) | (second & kLowMask) << 16;
  }
}

void ResizeRow(const std::uint8_t* row, const ResizeTable& table, const PairedWeights& weights, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(ResizeRowSimd)(row, table, weights, out);
}

void ResizeColumns(const std::uint8_t* rows, std::size_t stride, std::size_t taps, const std::uint32_t* weights,
                   std::size_t count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(ResizeColumnsSimd)(rows, stride, taps, weights, count, out);
}

}  // namespace shardpack::image
#endif  // HWY_ONCE
