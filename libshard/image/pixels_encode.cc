// Choosing the filters of Encoding::kPixels. Which are chosen is no part of the format, but it is part of a dataset's
// bytes: integers alone, no zstd.
#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>

#include "libshard/image/pixels.h"
#include "libshard/image/pixels_filter.h"

namespace shardpack {
namespace {

using image::PixelsFilter;

constexpr std::size_t kFewColours = 256;
constexpr int kFractionBits = 8;

// log2(value) * 2^kFractionBits, rounded down; value > 0.
std::uint64_t Log2(std::uint64_t value) {
  const int whole = std::bit_width(value) - 1;
  std::uint64_t mantissa = whole > 31 ? value >> (whole - 31) : value << (31 - whole);  // [2^31, 2^32)
  std::uint64_t result = static_cast<std::uint64_t>(whole);
  for (int bit = 0; bit < kFractionBits; ++bit) {
    mantissa = mantissa * mantissa >> 31;
    const bool doubled = mantissa >= std::uint64_t{1} << 32;
    if (doubled) mantissa >>= 1;
    result = result << 1 | (doubled ? 1 : 0);
  }
  return result;
}

// About the size that entropy coding brings the bytes to, runs of equal bytes being free as they nearly are for zstd.
std::uint64_t Cost(const std::vector<std::byte>& bytes) {
  std::array<std::uint32_t, 256> counts{};
  std::byte last{0};
  for (std::size_t i = image::kPixelsHeaderBytes; i < bytes.size(); ++i) {
    if (bytes[i] != last) ++counts[static_cast<std::size_t>(bytes[i])];
    last = bytes[i];
  }
  std::uint64_t total = 0, cost = 0;
  for (std::uint32_t count : counts) total += count;
  for (std::uint32_t count : counts) {
    if (count != 0) cost += count * (Log2(total) - Log2(count));
  }
  return cost;
}

// Whether the picture has as few colours as a palette holds. zstd finds their repetitions, which filters would hide:
// they make such pictures half as large again.
bool HasFewColours(const Samples& samples) {
  const std::size_t pixel_bytes = samples.channels * samples.bit_depth / 8u;
  if (pixel_bytes == 1) return false;  // 256 shades are no palette
  constexpr std::size_t kSlots = 4 * kFewColours;
  std::array<std::uint64_t, kSlots> keys{};
  std::array<bool, kSlots> used{};
  std::size_t colours = 0;
  std::uint64_t last = 0;
  for (std::size_t at = 0; at < samples.data.size(); at += pixel_bytes) {
    std::uint64_t key = 0;
    std::memcpy(&key, samples.data.data() + at, pixel_bytes);
    if (at != 0 && key == last) continue;
    last = key;
    std::size_t slot = (key * 0x9E3779B97F4A7C15ull) >> 54;
    while (used[slot] && keys[slot] != key) slot = (slot + 1) % kSlots;
    if (used[slot]) continue;
    if (++colours > kFewColours) return false;
    used[slot] = true;
    keys[slot] = key;
  }
  return colours * 8 <= samples.data.size() / pixel_bytes;  // a thumbnail has few colours for it has few pixels
}

void PutHeader(const Samples& samples, std::byte* out) {
  const auto put = [out](std::size_t at, std::uint32_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) out[at + i] = static_cast<std::byte>(value >> 8 * i);
  };
  std::memcpy(out, image::kPixelsMagic.data(), image::kPixelsMagic.size());
  put(4, 1, 1);
  put(5, (samples.channels - 1u) | (samples.bit_depth == 16 ? 4u : 0u) | (samples.orientation - 1u) << 3, 1);
  put(6, samples.maximum, 2);
  put(8, samples.width, 4);
  put(12, samples.height, 4);
}

// Sum of the differences' sizes: PNG's usual measure.
std::uint64_t SumOfSizes(const std::uint8_t* filtered, std::size_t count, int bits) {
  std::uint64_t sum = 0;
  if (bits == 8) {
    for (std::size_t i = 0; i < count; ++i) sum += filtered[i] < 128 ? filtered[i] : 256u - filtered[i];
  } else {
    for (std::size_t i = 0; i < count; ++i) sum += (filtered[2 * i] | filtered[2 * i + 1] << 8) / 2u;
  }
  return sum;
}

template <typename Sample>
class Encoder {
 public:
  explicit Encoder(const Samples& samples)
      : samples_(samples),
        count_(std::size_t{samples.width} * samples.channels),
        rows_(2 * count_),
        filtered_(2 * count_ * sizeof(Sample)) {}

  // Rows as they are, or each with the filter that leaves the smallest differences.
  void Encode(bool filtered, std::vector<std::byte>& out) {
    const std::size_t row_bytes = count_ * sizeof(Sample);
    out.resize(image::kPixelsHeaderBytes + (row_bytes + 1) * samples_.height);
    PutHeader(samples_, out.data());
    Sample *above = rows_.data(), *row = above + count_;
    std::fill(above, row, Sample{0});
    std::byte* to = out.data() + image::kPixelsHeaderBytes;
    for (std::uint32_t y = 0; y < samples_.height; ++y, to += row_bytes + 1) {
      Load(samples_.data.data() + y * row_bytes, row);
      auto* body = reinterpret_cast<std::uint8_t*>(to + 1);
      *to = static_cast<std::byte>(filtered ? Best(row, above, body) : PixelsFilter::kNone);
      if (!filtered) image::FilterRow(PixelsFilter::kNone, row, above, count_, samples_.channels, body);
      std::swap(above, row);
    }
  }

 private:
  void Load(const std::byte* from, Sample* row) const {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(from);
    for (std::size_t i = 0; i < count_; ++i) {
      row[i] = sizeof(Sample) == 1 ? bytes[i] : static_cast<Sample>(bytes[2 * i] | bytes[2 * i + 1] << 8);
    }
  }

  // Of equal ones the first.
  PixelsFilter Best(const Sample* row, const Sample* above, std::uint8_t* body) {
    const std::size_t row_bytes = count_ * sizeof(Sample);
    std::uint64_t least = UINT64_MAX;
    auto best = PixelsFilter::kNone;
    for (int i = 0; i < image::kPixelsFilters; ++i) {
      const auto filter = static_cast<PixelsFilter>(i);
      image::FilterRow(filter, row, above, count_, samples_.channels, filtered_.data());
      const std::uint64_t sum = SumOfSizes(filtered_.data(), count_, 8 * sizeof(Sample));
      if (sum >= least) continue;
      least = sum;
      best = filter;
      std::memcpy(body, filtered_.data(), row_bytes);
    }
    return best;
  }

  const Samples& samples_;
  std::size_t count_;
  std::vector<Sample> rows_;
  std::vector<std::uint8_t> filtered_;
};

template <typename Sample>
void Encode(const Samples& samples, std::vector<std::byte>& out) {
  Encoder<Sample> encoder(samples);
  encoder.Encode(false, out);
  if (HasFewColours(samples)) return;
  const std::uint64_t plain = Cost(out);
  std::vector<std::byte> filtered;
  encoder.Encode(true, filtered);
  if (Cost(filtered) < plain) out.swap(filtered);
}

}  // namespace

void EncodePixels(const Samples& samples, std::vector<std::byte>& out) {
  assert(samples.width > 0 && samples.height > 0 && samples.channels >= 1 && samples.channels <= 4);
  assert(samples.data.size() ==
         std::size_t{samples.width} * samples.height * samples.channels * (samples.bit_depth / 8u));
  if (samples.bit_depth == 16) return Encode<std::uint16_t>(samples, out);
  Encode<std::uint8_t>(samples, out);
}

}  // namespace shardpack
