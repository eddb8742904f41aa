// Every instruction set gives what the plain loop gives; pixels_test.py compares both with Pillow.
#include "shardpack/resize.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "libshard/image/resize_tables.h"
#include "tests/image/simd_targets.h"

using shardpack::PixelView;
using shardpack::Resizer;
using shardpack::ResizeReference;

namespace {

struct Source {
  std::uint32_t width, height;
  std::vector<std::uint8_t> pixels;
  PixelView View() const { return {pixels.data(), width, height, std::size_t{width} * 3}; }
};

Source Noise(std::uint32_t width, std::uint32_t height, std::uint32_t seed) {
  std::mt19937 random(seed);
  Source source{width, height, std::vector<std::uint8_t>(std::size_t{width} * height * 3)};
  for (auto& p : source.pixels) p = static_cast<std::uint8_t>(random());
  return source;
}

std::vector<std::uint8_t> Resized(Resizer& resizer, PixelView source, std::uint32_t width, std::uint32_t height,
                                  Resizer::Window window) {
  std::vector<std::uint8_t> out(std::size_t{window.width} * window.height * 3);  // exact: a sanitizer sees any overrun
  resizer.Resize(source, width, height, window, out.data());
  return out;
}

std::vector<std::uint8_t> Reference(PixelView source, std::uint32_t width, std::uint32_t height,
                                    Resizer::Window window) {
  std::vector<std::uint8_t> out(std::size_t{window.width} * window.height * 3);
  ResizeReference(source, width, height, window, out.data());
  return out;
}

void Check(Resizer& resizer, const Source& source, std::uint32_t width, std::uint32_t height, Resizer::Window window) {
  INFO(source.width << "x" << source.height << " to " << width << "x" << height << ", window " << window.x << ","
                    << window.y << " " << window.width << "x" << window.height);
  REQUIRE(Resized(resizer, source.View(), width, height, window) == Reference(source.View(), width, height, window));
}

void CheckAllSizes() {
  std::mt19937 random(7);
  Resizer resizer;
  const std::uint32_t sizes[] = {1, 2, 3, 5, 8, 16, 21, 64, 130};
  for (std::uint32_t round = 0; round < 200; ++round) {
    auto below = [&](std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); };
    auto pick = [&] { return sizes[below(std::size(sizes))]; };
    Source source = Noise(pick(), pick(), round);
    std::uint32_t width = pick(), height = pick();
    std::uint32_t x = below(width), y = below(height);
    Check(resizer, source, width, height, {x, y, 1 + below(width - x), 1 + below(height - y)});
  }
  // Long and narrow, either way: the last rows and the columns at the edge, next to no memory of one's own.
  for (std::uint32_t narrow : {1u, 2u, 11u}) {
    for (auto [w, h] : {std::pair{narrow, 3000u}, std::pair{3000u, narrow}}) {
      Source source = Noise(w, h, narrow);
      for (auto [width, height] :
           {std::pair{1u, 1u}, std::pair{7u, 224u}, std::pair{224u, 7u}, std::pair{24u, 3001u}}) {
        Check(resizer, source, width, height, {0, 0, width, height});
        Check(resizer, source, width, height, {width / 3, height / 2, width - width / 3, height - height / 2});
      }
    }
  }
}

}  // namespace

TEST_CASE("resizing gives the same on every instruction set of this processor", "[resize]") {
  OnEveryTarget(CheckAllSizes);
}

TEST_CASE("the axis that Pillow 13 resizes first goes first", "[resize]") {
  auto drawn = [](std::uint32_t width, std::uint32_t height) {
    Source source{width, height, {}};
    for (std::uint32_t i = 0; i < width * height * 3; ++i) {
      source.pixels.push_back(static_cast<std::uint8_t>(i * i * 37 + i * 101));
    }
    return source;
  };
  Resizer resizer;
  // What Pillow 13.0 makes of them; each has values that the other order would change. Five rows less are more than
  // twice the two columns less: vertical first. Four are not.
  const Source high = drawn(5, 7), lower = drawn(5, 6);
  CHECK(Resized(resizer, high.View(), 3, 2, {0, 0, 3, 2}) == std::vector<std::uint8_t>{148, 132, 140, 109, 133, 149, 97,
                                                                                       82, 158, 143, 142, 114, 129, 90,
                                                                                       131, 143, 160, 144});
  CHECK(Resized(resizer, lower.View(), 3, 2, {0, 0, 3, 2}) == std::vector<std::uint8_t>{141, 130, 147, 107, 139, 156,
                                                                                        94, 81, 170, 163, 146, 95, 113,
                                                                                        97, 119, 122, 123, 148});
}

TEST_CASE("the weights of each output pixel sum to one, as nearly as rounding lets them", "[resize]") {
  shardpack::image::ResizeTable table;
  for (std::uint32_t in : {1u, 7u, 300u, 3000u}) {
    for (std::uint32_t out : {1u, 8u, 224u, 4000u}) {
      FillResizeTable(in, out, 0, out, 2, table);
      for (std::size_t i = 0; i < out; ++i) {
        std::int64_t sum = 0;
        for (std::uint32_t k = 0; k < table.row_length; ++k) sum += table.WeightsOf(i)[k];
        REQUIRE(std::abs(sum - (1 << shardpack::image::kWeightBits)) <= table.spans[i].count);
        REQUIRE(table.spans[i].start + table.spans[i].count <= in);
      }
    }
  }
}

TEST_CASE("a picture of one colour keeps it at every size", "[resize]") {
  Source source{37, 23, std::vector<std::uint8_t>(37 * 23 * 3, 255)};
  Resizer resizer;
  for (std::uint32_t size : {1u, 5u, 23u, 37u, 200u}) {
    auto out = Resized(resizer, source.View(), size, size, {0, 0, size, size});
    CHECK(out == std::vector<std::uint8_t>(out.size(), 255));
  }
}

TEST_CASE("a source whose rows lie apart is read row by row", "[resize]") {
  Source wide = Noise(90, 40, 3);
  PixelView crop{wide.pixels.data() + (5 * 90 + 11) * 3, 50, 30, 90 * 3};
  Source tight{50, 30, {}};
  for (std::size_t y = 0; y < 30; ++y) {
    const std::uint8_t* row = crop.data + y * crop.stride_bytes;
    tight.pixels.insert(tight.pixels.end(), row, row + 150);
  }
  Resizer resizer;
  for (std::uint32_t size : {20u, 30u, 50u, 77u}) {
    Resizer::Window window{0, 0, size, size};
    CHECK(Resized(resizer, crop, size, size, window) == Reference(tight.View(), size, size, window));
  }
}

TEST_CASE("an unchanged size copies the window", "[resize]") {
  Source source = Noise(20, 10, 1);
  Resizer resizer;
  auto out = Resized(resizer, source.View(), 20, 10, {3, 2, 5, 4});
  for (std::size_t y = 0; y < 4; ++y) {
    for (std::size_t x = 0; x < 15; ++x) REQUIRE(out[y * 15 + x] == source.pixels[((y + 2) * 20 + 3) * 3 + x]);
  }
}
