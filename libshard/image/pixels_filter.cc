#include "libshard/image/pixels_filter.h"

#include <cstdlib>
#include <cstring>

namespace shardpack::image {
namespace {

inline int Paeth(int left, int up, int corner) {
  const int to_left = std::abs(up - corner), to_up = std::abs(left - corner);
  const int to_corner = std::abs(left + up - 2 * corner);
  if (to_left <= to_up && to_left <= to_corner) return left;
  return to_up <= to_corner ? up : corner;
}

template <PixelsFilter kFilter>
inline int Predict(int left, int up, int corner) {
  switch (kFilter) {
    case PixelsFilter::kSub:
      return left;
    case PixelsFilter::kUp:
      return up;
    case PixelsFilter::kAverage:
      return (left + up) >> 1;
    case PixelsFilter::kPaeth:
      return Paeth(left, up, corner);
    default:
      return 0;
  }
}

// How a difference lies in the bytes. Folding 16-bit ones, so that small negative ones have a high byte of 0 as small
// positive ones do, saves zstd 4 % of 16-bit photographs.
inline void Put(std::uint8_t difference, std::uint8_t* out, std::size_t i) { out[i] = difference; }
inline void Put(std::uint16_t difference, std::uint8_t* out, std::size_t i) {
  const auto folded = static_cast<std::uint16_t>(difference << 1 ^ (difference & 0x8000 ? 0xffff : 0));
  out[2 * i] = static_cast<std::uint8_t>(folded);
  out[2 * i + 1] = static_cast<std::uint8_t>(folded >> 8);
}
template <typename Sample>
inline Sample Get(const std::uint8_t* in, std::size_t i) {
  if constexpr (sizeof(Sample) == 1) {
    return in[i];
  } else {
    const auto folded = static_cast<std::uint16_t>(in[2 * i] | in[2 * i + 1] << 8);
    return static_cast<std::uint16_t>(folded >> 1 ^ (folded & 1 ? 0xffff : 0));
  }
}

template <PixelsFilter kFilter, typename Sample>
void Filter(const Sample* row, const Sample* above, std::size_t count, std::size_t channels, std::uint8_t* out) {
  for (std::size_t i = 0; i < channels; ++i) {
    Put(static_cast<Sample>(row[i] - Predict<kFilter>(0, above[i], 0)), out, i);
  }
  for (std::size_t i = channels; i < count; ++i) {
    Put(static_cast<Sample>(row[i] - Predict<kFilter>(row[i - channels], above[i], above[i - channels])), out, i);
  }
}

template <typename Sample>
void FilterAny(PixelsFilter filter, const Sample* row, const Sample* above, std::size_t count, std::size_t channels,
               std::uint8_t* out) {
  switch (filter) {
    case PixelsFilter::kNone:
      return Filter<PixelsFilter::kNone>(row, above, count, channels, out);
    case PixelsFilter::kSub:
      return Filter<PixelsFilter::kSub>(row, above, count, channels, out);
    case PixelsFilter::kUp:
      return Filter<PixelsFilter::kUp>(row, above, count, channels, out);
    case PixelsFilter::kAverage:
      return Filter<PixelsFilter::kAverage>(row, above, count, channels, out);
    case PixelsFilter::kPaeth:
      return Filter<PixelsFilter::kPaeth>(row, above, count, channels, out);
  }
}

// The distance to the left is a constant, so that what was just written stays in registers.
template <PixelsFilter kFilter, std::size_t kChannels, typename Sample>
void Unfilter(const std::uint8_t* in, const Sample* above, std::size_t count, Sample* row) {
  int left[kChannels] = {}, corner[kChannels] = {};
  for (std::size_t i = 0; i < count; i += kChannels) {
    for (std::size_t c = 0; c < kChannels; ++c) {
      const int up = above[i + c];
      const auto value = static_cast<Sample>(Get<Sample>(in, i + c) + Predict<kFilter>(left[c], up, corner[c]));
      row[i + c] = value;
      left[c] = value;
      corner[c] = up;
    }
  }
}

template <PixelsFilter kFilter, typename Sample>
void UnfilterChannels(const std::uint8_t* in, const Sample* above, std::size_t count, std::size_t channels,
                      Sample* row) {
  switch (channels) {
    case 1:
      return Unfilter<kFilter, 1>(in, above, count, row);
    case 2:
      return Unfilter<kFilter, 2>(in, above, count, row);
    case 3:
      return Unfilter<kFilter, 3>(in, above, count, row);
    default:
      return Unfilter<kFilter, 4>(in, above, count, row);
  }
}

// No neighbour on the left is looked at: all samples of a row at once.
template <PixelsFilter kFilter, typename Sample>
void UnfilterFree(const std::uint8_t* in, const Sample* above, std::size_t count, Sample* row) {
  for (std::size_t i = 0; i < count; ++i) {
    row[i] = static_cast<Sample>(Get<Sample>(in, i) + (kFilter == PixelsFilter::kUp ? above[i] : 0));
  }
}

template <typename Sample>
void UnfilterAny(PixelsFilter filter, const std::uint8_t* in, const Sample* above, std::size_t count,
                 std::size_t channels, Sample* row) {
  switch (filter) {
    case PixelsFilter::kNone:
      return UnfilterFree<PixelsFilter::kNone>(in, above, count, row);
    case PixelsFilter::kSub:
      return UnfilterChannels<PixelsFilter::kSub>(in, above, count, channels, row);
    case PixelsFilter::kUp:
      return UnfilterFree<PixelsFilter::kUp>(in, above, count, row);
    case PixelsFilter::kAverage:
      return UnfilterChannels<PixelsFilter::kAverage>(in, above, count, channels, row);
    case PixelsFilter::kPaeth:
      return UnfilterChannels<PixelsFilter::kPaeth>(in, above, count, channels, row);
  }
}

}  // namespace

void FilterRow(PixelsFilter filter, const std::uint8_t* row, const std::uint8_t* above, std::size_t count,
               std::size_t channels, std::uint8_t* out) {
  FilterAny(filter, row, above, count, channels, out);
}
void FilterRow(PixelsFilter filter, const std::uint16_t* row, const std::uint16_t* above, std::size_t count,
               std::size_t channels, std::uint8_t* out) {
  FilterAny(filter, row, above, count, channels, out);
}

void UnfilterRow(PixelsFilter filter, const std::uint8_t* in, const std::uint8_t* above, std::size_t count,
                 std::size_t channels, std::uint8_t* row) {
  if (filter == PixelsFilter::kNone) {
    std::memcpy(row, in, count);
    return;
  }
  UnfilterAny(filter, in, above, count, channels, row);
}
void UnfilterRow(PixelsFilter filter, const std::uint8_t* in, const std::uint16_t* above, std::size_t count,
                 std::size_t channels, std::uint16_t* row) {
  UnfilterAny(filter, in, above, count, channels, row);
}

}  // namespace shardpack::image
