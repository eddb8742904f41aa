#include <hwy/highway.h>
#include <hwy/targets.h>

#include <catch2/catch.hpp>
#include <random>

#include "shardpack/transcode.h"
#include "tests/pack/made_tree.h"

using namespace shardpack;
using namespace shardpack::testing;

namespace {

// Restores the processor's own choice.
struct TargetScope {
  explicit TargetScope(std::int64_t target) { Set(target); }
  ~TargetScope() { Set(0); }
  static void Set(std::int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

Image Noise(std::uint32_t width, std::uint32_t height, unsigned seed) {
  std::mt19937 random(seed);
  Image image{width, height, std::vector<std::uint8_t>(std::size_t{width} * height * 3)};
  for (auto& p : image.pixels) p = static_cast<std::uint8_t>(random());
  return image;
}

// JPEG and PNG of sizes that leave every remainder of a vector.
fs::path MakeNoisyTree(const TemporaryFolder& folder) {
  Transcoder transcoder;
  for (unsigned i = 0; i < 24; ++i) {
    const Image image = Noise(40 + i, 75 - i, i);
    std::vector<std::byte> bytes, side_data;
    if (i % 2 == 0) {
      transcoder.EncodeJpeg(image, false, 92, i % 4 == 0 ? 420 : 444, bytes, side_data);
    } else {
      bytes = EncodePng(image);
    }
    WriteFile(folder / "tree" / (std::to_string(i % 3) + "/" + std::to_string(i) + (i % 2 == 0 ? ".jpg" : ".png")),
              AsText(bytes));
  }
  return folder / "tree";
}

}  // namespace

TEST_CASE("a dataset's bytes are the same on every instruction set of this processor", "[convert][targets]") {
  TemporaryFolder folder;
  const fs::path tree = MakeNoisyTree(folder);
  const std::int64_t all = hwy::SupportedTargets();
  for (const ImageMode images : {ImageMode::kJpeg, ImageMode::kPixels, ImageMode::kLossless}) {
    PackOptions options = Options(tree, folder / ("own" + std::to_string(static_cast<int>(images))));
    options.images = images;
    options.shard_records = 5;
    options.statistics = Statistics::kAll;
    if (images != ImageMode::kLossless) options.resize = ResizeTo{.width = 21, .height = 19};
    Convert(options);
    const auto expected = FilesOf(options.output);
    CHECK(expected.size() == 5 + 1);
    int tried = 0;
    for (std::int64_t target = 1; target > 0; target <<= 1) {
      if (!(all & target)) continue;
      TargetScope scope(target);
      INFO(hwy::TargetName(target));
      REQUIRE(hwy::SupportedTargets() == target);
      options.output = folder / ("images" + std::to_string(static_cast<int>(images)) + "-" + std::to_string(target));
      Convert(options);
      CHECK(FilesOf(options.output) == expected);
      ++tried;
    }
    CHECK(tried >= 1);
  }
}
