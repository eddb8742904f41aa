// The arithmetic from stored bytes to what a network takes, written once for the CPU and for CUDA. C++17, for nvcc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define SHARDPACK_HOST_DEVICE __host__ __device__ inline
#else
#define SHARDPACK_HOST_DEVICE inline
#endif

namespace shardpack::loader {

// What becomes of byte v of channel c: value[c][v]. A table, so that the CPU, every SIMD target and CUDA give the same
// floats.
struct NormaliseTable {
  float value[3][256];
};

// (v / 255 - mean) / deviation, each step rounded to float: PyTorch's ToTensor and Normalize give these very values.
inline NormaliseTable MakeNormaliseTable(const std::array<float, 3>& mean, const std::array<float, 3>& deviation) {
  NormaliseTable table;
  for (std::size_t c = 0; c < 3; ++c) {
    for (int v = 0; v < 256; ++v) table.value[c][v] = (static_cast<float>(v) / 255.0f - mean[c]) / deviation[c];
  }
  return table;
}

SHARDPACK_HOST_DEVICE std::uint32_t BitsOf(float value) {
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

// To bfloat16, rounding half to even. NaN stays NaN.
SHARDPACK_HOST_DEVICE std::uint16_t ToBfloat16(float value) {
  const std::uint32_t bits = BitsOf(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

// To IEEE half, rounding half to even; too large becomes infinity, tiny becomes a subnormal or zero. NaN stays NaN.
SHARDPACK_HOST_DEVICE std::uint16_t ToHalf(float value) {
  const std::uint32_t bits = BitsOf(value), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x47800000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // 65536 and up
  if (magnitude < 0x33000000u) return static_cast<std::uint16_t>(sign);  // under half of the smallest subnormal
  const std::uint32_t exponent = magnitude >> 23;
  std::uint32_t kept, dropped, half_way;
  if (exponent >= 113) {  // normal as a half
    kept = (magnitude - (112u << 23)) >> 13;
    dropped = magnitude & 0x1fffu;
    half_way = 0x1000u;
  } else {
    const std::uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u, shift = 126u - exponent;
    kept = mantissa >> shift;
    dropped = mantissa & ((1u << shift) - 1u);
    half_way = 1u << (shift - 1u);
  }
  // A carry runs on into the exponent, up to infinity, which is what rounding asks for.
  if (dropped > half_way || (dropped == half_way && (kept & 1u))) ++kept;
  return static_cast<std::uint16_t>(sign | kept);
}

enum class PixelType : std::uint8_t { kFloat32, kFloat16, kBfloat16 };
enum class PixelLayout : std::uint8_t { kNhwc, kNchw };

SHARDPACK_HOST_DEVICE std::size_t BytesOf(PixelType type) { return type == PixelType::kFloat32 ? 4 : 2; }

// A batch of images [batch, height, width, 3] in bytes, and where it goes.
struct NormaliseJob {
  const std::uint8_t* images = nullptr;
  const std::uint8_t* flip = nullptr;  // [batch], not 0: mirrored left to right; null: none is
  void* out = nullptr;                 // batch x height x width x 3 of `type`
  std::uint32_t batch = 0, height = 0, width = 0;
  PixelType type = PixelType::kFloat32;
  PixelLayout layout = PixelLayout::kNchw;
};

SHARDPACK_HOST_DEVICE void StorePixelValue(const NormaliseJob& job, std::size_t at, float value) {
  switch (job.type) {
    case PixelType::kFloat32:
      static_cast<float*>(job.out)[at] = value;
      return;
    case PixelType::kFloat16:
      static_cast<std::uint16_t*>(job.out)[at] = ToHalf(value);
      return;
    case PixelType::kBfloat16:
      static_cast<std::uint16_t*>(job.out)[at] = ToBfloat16(value);
      return;
  }
}

// Writes pixel `p` of the batch, counted through images, rows and columns of the output.
SHARDPACK_HOST_DEVICE void NormalisePixel(const NormaliseJob& job, const NormaliseTable& table, std::size_t p) {
  const std::size_t plane = static_cast<std::size_t>(job.height) * job.width;
  const std::size_t image = p / plane, column = p % job.width;
  const bool mirrored = job.flip != nullptr && job.flip[image] != 0;
  const std::uint8_t* pixel = job.images + 3 * (mirrored ? p - column + (job.width - 1 - column) : p);
  for (std::size_t c = 0; c < 3; ++c) {
    const std::size_t at = job.layout == PixelLayout::kNhwc ? 3 * p + c : (3 * image + c) * plane + p % plane;
    StorePixelValue(job, at, table.value[c][pixel[c]]);
  }
}

// The whole job on this thread.
inline void NormaliseOnCpu(const NormaliseJob& job, const NormaliseTable& table) {
  const std::size_t pixels = static_cast<std::size_t>(job.batch) * job.height * job.width;
  for (std::size_t p = 0; p < pixels; ++p) NormalisePixel(job, table, p);
}

}  // namespace shardpack::loader
