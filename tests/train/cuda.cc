// Expected values come from IEEE 754 and from PyTorch: torch.tensor(x).half() and .bfloat16(), transforms.Normalize.
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "shardpack/loader/cuda/pixel_math.h"

using namespace shardpack::loader;

namespace {

constexpr std::array<float, 3> kMean = {0.485f, 0.456f, 0.406f}, kDeviation = {0.229f, 0.224f, 0.225f};

// Two images of 1 x 2 pixels whose bytes are all different.
const std::vector<std::uint8_t> kImages = {10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120};

// value[c][v] = 1000 c + v shows where each byte went.
NormaliseTable ShowingTable() {
  NormaliseTable table;
  for (int c = 0; c < 3; ++c) {
    for (int v = 0; v < 256; ++v) table.value[c][v] = static_cast<float>(1000 * c + v);
  }
  return table;
}

std::vector<float> Normalised(PixelLayout layout, const std::uint8_t* flip) {
  std::vector<float> out(12);
  NormaliseOnCpu({kImages.data(), flip, out.data(), 2, 1, 2, PixelType::kFloat32, layout}, ShowingTable());
  return out;
}

}  // namespace

TEST_CASE("the table holds what PyTorch's ToTensor and Normalize give", "[cuda]") {
  const NormaliseTable table = MakeNormaliseTable(kMean, kDeviation);
  // torch 2.11: (v / 255 - mean) / deviation of float32 tensors, printed with nine digits.
  CHECK(table.value[0][0] == -2.11790395f);
  CHECK(table.value[1][0] == -2.03571415f);
  CHECK(table.value[2][0] == -1.80444443f);
  CHECK(table.value[0][255] == 2.24890828f);
  CHECK(table.value[1][128] == 0.205182195f);
}

TEST_CASE("bytes keep their order in NHWC and go to planes in NCHW", "[cuda]") {
  CHECK(Normalised(PixelLayout::kNhwc, nullptr) ==
        std::vector<float>{10, 1020, 2030, 40, 1050, 2060, 70, 1080, 2090, 100, 1110, 2120});
  CHECK(Normalised(PixelLayout::kNchw, nullptr) ==
        std::vector<float>{10, 40, 1020, 1050, 2030, 2060, 70, 100, 1080, 1110, 2090, 2120});
}

TEST_CASE("a flip mirrors the images it is set for and no other", "[cuda]") {
  const std::uint8_t flip[2] = {0, 1};
  CHECK(Normalised(PixelLayout::kNchw, flip) ==
        std::vector<float>{10, 40, 1020, 1050, 2030, 2060, 100, 70, 1110, 1080, 2120, 2090});
}

TEST_CASE("half rounds to nearest, ties to even, and keeps subnormals, infinities and NaN", "[cuda]") {
  struct {
    float value;
    std::uint16_t bits;
  } const cases[] = {{0.0f, 0x0000},         {-0.0f, 0x8000},           {1.0f, 0x3c00},
                     {-2.0f, 0xc000},        {65504.0f, 0x7bff},        {65519.0f, 0x7bff},
                     {65520.0f, 0x7c00},     {-1e9f, 0xfc00},           {0x1p-14f, 0x0400},
                     {0x1p-24f, 0x0001},     {0x1p-25f, 0x0000},        {0x1.8p-25f, 0x0001},
                     {0x1.ff8p-15f, 0x03ff}, {1.0f + 0x1p-11f, 0x3c00}, {1.0f + 0x3p-11f, 0x3c02},
                     {0.1f, 0x2e66},         {-2.11790395f, 0xc03c},    {2.2489083f, 0x407f},
                     {INFINITY, 0x7c00},     {0x1.ffffp-15f, 0x0400}};
  for (const auto& one : cases) {
    INFO(one.value);
    CHECK(ToHalf(one.value) == one.bits);
  }
  CHECK((ToHalf(std::numeric_limits<float>::quiet_NaN()) & 0x7fff) > 0x7c00);
}

TEST_CASE("bfloat16 rounds to nearest, ties to even, and keeps infinities and NaN", "[cuda]") {
  struct {
    float value;
    std::uint16_t bits;
  } const cases[] = {{0.0f, 0x0000},           {1.0f, 0x3f80},           {-2.0f, 0xc000},
                     {1.0f + 0x1p-8f, 0x3f80}, {1.0f + 0x3p-8f, 0x3f82}, {0.1f, 0x3dcd},
                     {3.4028235e38f, 0x7f80},  {-INFINITY, 0xff80},      {-2.11790395f, 0xc008}};
  for (const auto& one : cases) {
    INFO(one.value);
    CHECK(ToBfloat16(one.value) == one.bits);
  }
  CHECK((ToBfloat16(std::numeric_limits<float>::quiet_NaN()) & 0x7fff) > 0x7f80);
}
