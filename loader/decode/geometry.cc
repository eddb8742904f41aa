#include "loader/decode/geometry.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <string>

#include "shardpack/error.h"

namespace shardpack::loader {
namespace {

constexpr double kMinRatio = 3.0 / 4.0, kMaxRatio = 4.0 / 3.0;

// Python's round(): halves to even, which is also what the default rounding mode gives; callers of this library may
// have changed that one.
double RoundHalfEven(double value) {
  const double floor = std::floor(value), rest = value - floor;
  if (rest < 0.5) return floor;
  if (rest > 0.5) return floor + 1;
  return std::fmod(floor, 2.0) == 0 ? floor : floor + 1;
}

}  // namespace

std::optional<CropSize> TryCrop(std::uint32_t width, std::uint32_t height, double scale, double aspect) {
  const double target_area = static_cast<double>(std::uint64_t{width} * height) * scale;
  const double w = RoundHalfEven(std::sqrt(target_area * aspect));
  const double h = RoundHalfEven(std::sqrt(target_area / aspect));
  if (!(w > 0 && w <= width && h > 0 && h <= height)) return std::nullopt;
  return CropSize{static_cast<std::uint32_t>(w), static_cast<std::uint32_t>(h)};
}

CropSize FallbackCrop(std::uint32_t width, std::uint32_t height) {
  const double ratio = static_cast<double>(width) / height;
  if (ratio < kMinRatio) return {width, static_cast<std::uint32_t>(RoundHalfEven(width / kMinRatio))};
  if (ratio > kMaxRatio) return {static_cast<std::uint32_t>(RoundHalfEven(height * kMaxRatio)), height};
  return {width, height};
}

CropSize ResizedSize(std::uint32_t width, std::uint32_t height, std::uint32_t size) {
  const std::uint64_t shorter = std::min(width, height), longer = std::max(width, height);
  // Whole numbers: Python's size * long is exact, and its quotient of two integers below 2^53 truncates to the same.
  const std::uint64_t resized = size * longer / shorter;
  if (resized > std::numeric_limits<std::int32_t>::max()) {
    throw Error(ErrorCode::kUnsupported, std::to_string(width) + "x" + std::to_string(height) +
                                             " pixels are too narrow to be resized to " + std::to_string(size));
  }
  const auto long_side = static_cast<std::uint32_t>(resized);
  return width <= height ? CropSize{size, long_side} : CropSize{long_side, size};
}

std::uint32_t CentreOffset(std::uint32_t size, std::uint32_t crop) {
  assert(crop <= size);
  const std::uint32_t twice = size - crop, half = twice / 2;
  return half + (twice % 2 == 1 && half % 2 == 1);
}

}  // namespace shardpack::loader
