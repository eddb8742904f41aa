#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "loader/decode/geometry.h"
#include "loader/decode/sample_decoder.h"
#include "shardpack/error.h"
#include "shardpack/loader/transform.h"

namespace shardpack::loader {
namespace {

struct CropTruth {
  std::uint32_t width, height;
  double scale, aspect;
  std::uint32_t crop_width, crop_height;
  bool fallback;
};
struct ResizeTruth {
  std::uint32_t width, height, size, resized_width, resized_height;
};
struct CentreTruth {
  std::uint32_t size, crop, offset;
};
#include "tests/loader/geometry_truth.inc"

TEST_CASE("crops have the size torchvision gives them, fallback included", "[transform]") {
  for (const CropTruth& t : kCrops) {
    CAPTURE(t.width, t.height, t.scale, t.aspect);
    const auto tried = TryCrop(t.width, t.height, t.scale, t.aspect);
    CHECK(tried.has_value() == !t.fallback);
    CHECK(tried.value_or(FallbackCrop(t.width, t.height)) == CropSize{t.crop_width, t.crop_height});
  }
}

TEST_CASE("resizing the shorter side gives torchvision's size", "[transform]") {
  for (const ResizeTruth& t : kResizes) {
    CAPTURE(t.width, t.height, t.size);
    CHECK(ResizedSize(t.width, t.height, t.size) == CropSize{t.resized_width, t.resized_height});
  }
}

TEST_CASE("the centre lies where torchvision's CenterCrop lies", "[transform]") {
  for (const CentreTruth& t : kCentres) {
    CAPTURE(t.size, t.crop);
    CHECK(CentreOffset(t.size, t.crop) == t.offset);
  }
}

TEST_CASE("an image too narrow for any resized size is an error, not a wrapped number", "[transform]") {
  CHECK_THROWS_AS(ResizedSize(1, 4'000'000'000u, 256), Error);
}

TEST_CASE("drawn geometry lies inside the picture, whatever its shape", "[transform]") {
  const Transform transforms[] = {TrainTransform(224), EvalTransform(256, 224), ClassicTransform(), NoTransform()};
  for (const Transform& transform : transforms) {
    for (const ResizeTruth& t : kResizes) {
      for (std::uint64_t sample = 0; sample < 20; ++sample) {
        Philox random(1, 2, sample, 0);
        const Geometry g = transform.Draw(t.width, t.height, random);
        CAPTURE(transform.Describe(), t.width, t.height, sample);
        REQUIRE((g.crop_width > 0 && g.crop_x <= t.width - g.crop_width && g.crop_width <= t.width));
        REQUIRE((g.crop_height > 0 && g.crop_y <= t.height - g.crop_height && g.crop_height <= t.height));
        if (transform.kind == Transform::Kind::kNone) continue;
        REQUIRE((g.resized_width >= 224 && g.window_x <= g.resized_width - 224));
        REQUIRE((g.resized_height >= 224 && g.window_y <= g.resized_height - 224));
        const RowRange rows = RowsOfWindow(g, 224);
        REQUIRE((rows.first < rows.end && rows.end <= g.crop_height));
      }
    }
  }
}

TEST_CASE("half of the pictures are mirrored and crops reach every corner", "[transform]") {
  const Transform transform = ClassicTransform(10, 8);
  int flipped = 0;
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> windows;
  for (std::uint64_t sample = 0; sample < 9000; ++sample) {
    Philox random(3, 0, sample, 0);
    const Geometry g = transform.Draw(10, 10, random);
    flipped += g.flip;
    ++windows[{g.window_x, g.window_y}];
  }
  CHECK(std::abs(flipped - 4500) < 250);  // five deviations
  REQUIRE(windows.size() == 9);
  for (const auto& [window, count] : windows) CHECK(std::abs(count - 1000) < 160);
}

TEST_CASE("the train crop's area is uniform between 8 and 100 percent where every crop fits", "[transform]") {
  // Ratios reach 4/3, so areas up to 3/4 always fit into a square: each of ten shares up to there is as likely as
  // another.
  std::map<int, int> tenths;
  for (std::uint64_t sample = 0; sample < 20000; ++sample) {
    Philox random(4, 0, sample, 0);
    const Geometry g = TrainTransform(224).Draw(4000, 4000, random);
    const double area = static_cast<double>(g.crop_width) * g.crop_height / 16e6;
    if (area < 0.728) ++tenths[static_cast<int>((area - 0.08) / 0.0648)];
  }
  for (int i = 0; i < 10; ++i) CHECK(std::abs(tenths[i] - tenths[0]) < 260);
}

TEST_CASE("transforms are known by name and describe themselves", "[transform]") {
  CHECK(TransformFromName("train").Describe() == "train 224");
  CHECK(TransformFromName("eval").Describe() == "eval 256 224");
  CHECK(TransformFromName("classic").Describe() == "classic 256 224");
  CHECK(TransformFromName("none").Describe() == "none");
  CHECK_THROWS_WITH(TransformFromName("fancy"), Catch::Contains("\"fancy\" is no transform"));
}

}  // namespace
}  // namespace shardpack::loader
