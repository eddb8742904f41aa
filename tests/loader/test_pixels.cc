#include <catch2/catch.hpp>
#include <cstring>

#include "loader/order/operations.h"
#include "shardpack/error.h"
#include "shardpack/label.h"
#include "shardpack/resize.h"
#include "tests/loader/picture_dataset.h"

namespace shardpack::loader {
namespace {

// What a place must hold, by the plainest code: whole picture, reference resize, mirrored and normalised pixel by
// pixel.
std::vector<std::uint8_t> Expected(const Image& picture, const Geometry& g, std::uint32_t width, std::uint32_t height) {
  PixelView view{picture.pixels.data() + (std::size_t{g.crop_y} * picture.width + g.crop_x) * 3, g.crop_width,
                 g.crop_height, std::size_t{picture.width} * 3};
  std::vector<std::uint8_t> resized(std::size_t{width} * height * 3);
  ResizeReference(view, g.resized_width, g.resized_height, {g.window_x, g.window_y, width, height}, resized.data());
  if (!g.flip) return resized;
  std::vector<std::uint8_t> mirrored(resized.size());
  for (std::size_t y = 0; y < height; ++y) {
    for (std::size_t x = 0; x < width; ++x) {
      std::memcpy(&mirrored[(y * width + x) * 3], &resized[(y * width + width - 1 - x) * 3], 3);
    }
  }
  return mirrored;
}

float Normalised(std::uint8_t value, int channel, const Transform& t) {
  const float unit = static_cast<float>(value) / 255.0f;
  const float centred = unit - t.mean[static_cast<std::size_t>(channel)];
  return centred / t.deviation[static_cast<std::size_t>(channel)];
}

// Compares element [k, c, y, x] through the field's own strides.
void CheckPlace(const Batch& batch, std::size_t k, const std::vector<std::uint8_t>& want, const LoaderOptions& o) {
  const Field& images = batch.images();
  const bool nhwc = o.output.layout == Layout::kNhwc;
  const auto& s = images.strides;
  const std::int64_t stride_c = nhwc ? s[3] : s[1], stride_y = nhwc ? s[1] : s[2], stride_x = nhwc ? s[2] : s[3];
  std::size_t wrong = 0, at = 0;
  for (std::int64_t y = 0; y < o.transform.height; ++y) {
    for (std::int64_t x = 0; x < o.transform.width; ++x) {
      for (int c = 0; c < 3; ++c, ++at) {
        const std::int64_t offset = static_cast<std::int64_t>(k) * s[0] + c * stride_c + y * stride_y + x * stride_x;
        if (images.dtype == DType::kUint8) {
          wrong += reinterpret_cast<const std::uint8_t*>(images.data)[offset] != want[at];
        } else {
          wrong += reinterpret_cast<const float*>(images.data)[offset] != Normalised(want[at], c, o.transform);
        }
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("pixels are those of decoding all, resizing by the reference, mirroring and normalising",
          "[loader][pixels]") {
  PictureDataset::Options pictures;
  pictures.jpeg = true;
  pictures.max_side = 90;
  const PictureDataset data(pictures);
  for (const Transform& transform : {TrainTransform(24), EvalTransform(28, 24), ClassicTransform(28, 24)}) {
    for (DType dtype : {DType::kUint8, DType::kFloat32}) {
      for (Layout layout : {Layout::kNhwc, Layout::kNchw}) {
        LoaderOptions options;
        options.batch_size = 7;
        options.seed = 11;
        options.transform = transform;
        options.output = {dtype, layout};
        DataLoader loader(data.Open(), options);
        for (const Batch& batch : loader.Epoch(2)) {
          const BatchCopy copy = CopyOf(batch);
          for (std::size_t k = 0; k < 7; ++k) {
            const auto index = static_cast<std::uint64_t>(copy.indices[k]);
            CAPTURE(transform.Describe(), index, static_cast<int>(dtype), static_cast<int>(layout));
            const Image& picture = data.picture(index);
            Philox random(11, 2, index, kAugmentOperation);
            CheckPlace(batch, k, Expected(picture, transform.Draw(picture.width, picture.height, random), 24, 24),
                       options);
            CHECK(copy.labels[k] == data.label(index));
          }
        }
      }
    }
  }
}

TEST_CASE("without a transform a batch holds the pictures themselves", "[loader][pixels]") {
  PictureDataset::Options pictures;
  pictures.min_side = pictures.max_side = 28;
  const PictureDataset data(pictures);
  LoaderOptions options;
  options.batch_size = 8;
  DataLoader loader(data.Open(), options);
  CHECK(loader.options().transform.width == 28);
  for (const Batch& batch : loader.Epoch(0)) {
    for (std::size_t k = 0; k < 8; ++k) {
      const auto index = static_cast<std::uint64_t>(CopyOf(batch).indices[k]);
      CheckPlace(batch, k, data.picture(index).pixels, loader.options());
    }
  }
}

TEST_CASE("fields are named, aligned to 64 bytes and have the shape they say", "[loader]") {
  const PictureDataset data({});
  LoaderOptions options;
  options.batch_size = 5;
  options.transform = TrainTransform(15);
  options.output = {DType::kFloat32, Layout::kNchw};
  DataLoader loader(data.Open(), options);
  auto epoch = loader.Epoch(0);
  const Batch batch = epoch.Next().value();
  CHECK(batch.images().shape == std::vector<std::int64_t>{5, 3, 15, 15});
  CHECK(batch.images().strides == std::vector<std::int64_t>{675, 225, 15, 1});
  for (const char* name : {"images", "labels", "indices", "source_indices", "valid"}) {
    const Field* field = batch.Find(name);
    REQUIRE(field);
    CHECK(field->name == name);
    CHECK(reinterpret_cast<std::uintptr_t>(field->data) % 64 == 0);
  }
  CHECK(batch.Find("masks") == nullptr);
}

TEST_CASE("where labels are lists or fractions a batch has none, and says where they are", "[loader]") {
  const test::TempFolder folder;
  test::ShardBuilder shard;
  test::TestRecord record;
  record.key = "one";
  record.raw = JpegOf(MakePicture(20, 20, 1), 90);
  record.encoding = Encoding::kJpeg;
  record.width = record.height = 20;
  record.metadata = R"({"label":[3,-1],"place":"Ulm"})";
  shard.Add(record);
  Manifest manifest = test::WriteDataset(folder.path(), {shard});
  manifest.label_kind = LabelKind::kList;
  manifest.Commit(folder.path());

  const Dataset dataset = Dataset::Open(folder.path());
  DataLoader loader(dataset, {});
  auto epoch = loader.Epoch(0);
  const Batch batch = epoch.Next().value();
  CHECK(batch.images().shape == std::vector<std::int64_t>{1, 20, 20, 3});
  CHECK(batch.Find("labels") == nullptr);
  CHECK_THROWS_WITH(batch.labels(), Catch::Matchers::Contains("LabelText"));
  CHECK(LabelText(dataset, 0) == "[3,-1]");
  CHECK(LabelText(LabelKind::kFloat, 0, AsBytes(R"({"label":0.10})")) == "0.1");
  CHECK(LabelText(LabelKind::kInteger, -7, {}) == "-7");
  CHECK_THROWS_AS(LabelText(LabelKind::kFloat, 0, AsBytes(R"({"label":[1]})")), Error);
  CHECK_THROWS_AS(LabelText(LabelKind::kList, 0, AsBytes(R"({"label":[1.5]})")), Error);
  CHECK_THROWS_AS(LabelText(LabelKind::kList, 0, {}), Error);
}

}  // namespace
}  // namespace shardpack::loader
