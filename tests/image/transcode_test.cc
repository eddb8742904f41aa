// What docs/formats/pixels.md shows byte by byte, what must not depend on instruction sets or on the picture before,
// and damage. transcode_test.py compares pixels with Pillow.
#include "shardpack/transcode.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "libshard/image/icc.h"
#include "libshard/pack/image_work.h"
#include "shardpack/error.h"
#include "tests/image/simd_targets.h"

using namespace shardpack;
using Catch::Matchers::Contains;

namespace {

std::vector<std::byte> FromHex(std::string_view hex) {
  std::vector<std::byte> out;
  int digits = 0;
  unsigned value = 0;
  for (char c : hex) {
    if (c == ' ') continue;
    value = value << 4 | static_cast<unsigned>(c <= '9' ? c - '0' : c - 'A' + 10);
    if (++digits % 2 == 0) out.push_back(static_cast<std::byte>(value));
  }
  return out;
}

Samples Drawn(std::uint32_t width, std::uint32_t height, int channels, int depth, std::uint32_t seed) {
  Samples samples;
  samples.width = width;
  samples.height = height;
  samples.channels = static_cast<std::uint8_t>(channels);
  samples.bit_depth = static_cast<std::uint8_t>(depth);
  std::mt19937 random(seed);
  samples.data.resize(std::size_t{width} * height * samples.channels * (samples.bit_depth / 8u));
  for (std::size_t i = 0; i < samples.data.size(); ++i) {
    samples.data[i] = static_cast<std::byte>(i / 3 + random() % 9 + (i / width) % 7 * 20);
  }
  return samples;
}

Image Picture(std::uint32_t width, std::uint32_t height) {
  Image image{width, height, {}};
  for (std::byte value : Drawn(width, height, 3, 8, 1).data) image.pixels.push_back(static_cast<std::uint8_t>(value));
  return image;
}

std::vector<std::byte> Jpeg(std::uint32_t width, std::uint32_t height, int quality = 85) {
  std::vector<std::byte> out, side_data;
  Transcoder().EncodeJpeg(Picture(width, height), false, quality, 420, out, side_data);
  return out;
}

std::vector<std::byte> Made(const ImageWorkOptions& options, Bytes input) {
  std::mutex large;
  ImageWorker worker(options, large);
  const WorkedImage worked = worker.Work(input);
  std::vector<std::byte> out(worked.bytes.begin(), worked.bytes.end());
  out.insert(out.end(), worked.side_data.begin(), worked.side_data.end());
  return out;
}

}  // namespace

TEST_CASE("the examples of the format's text decode to what it says", "[pixels]") {
  Samples samples;
  DecodePixels(FromHex("91 53 50 58 01 00 00 00 03 00 00 00 02 00 00 00  01 0A 01 01  02 00 00 FF"), {}, samples);
  CHECK(samples.width == 3);
  CHECK(samples.height == 2);
  CHECK(samples.channels == 1);
  CHECK(samples.bit_depth == 8);
  CHECK(samples.orientation == 1);
  CHECK(samples.data == FromHex("0A 0B 0C 0A 0B 0B"));
  DecodePixels(FromHex("91 53 50 58 01 2C E8 03 02 00 00 00 01 00 00 00  01 D0 07 01 00"), {}, samples);
  CHECK(samples.bit_depth == 16);
  CHECK(samples.maximum == 1000);
  CHECK(samples.orientation == 6);
  CHECK(samples.data == FromHex("E8 03 E7 03"));
}

TEST_CASE("what was filtered comes back, whatever the shape", "[pixels]") {
  std::vector<std::byte> pixels;
  Samples back;
  for (int depth : {8, 16}) {
    for (int channels = 1; channels <= 4; ++channels) {
      for (auto [width, height] : {std::pair{1u, 1u}, std::pair{1u, 40u}, std::pair{40u, 1u}, std::pair{37u, 23u}}) {
        Samples samples = Drawn(width, height, channels, depth, width);
        samples.orientation = static_cast<Orientation>(1 + (width + static_cast<unsigned>(channels)) % 8);
        samples.maximum = depth == 16 ? 65535 : 0;
        EncodePixels(samples, pixels);
        DecodePixels(pixels, {}, back);
        REQUIRE(back == samples);
      }
    }
  }
}

TEST_CASE("grey pixels become RGB on every instruction set alike", "[pixels]") {
  OnEveryTarget([] {
    ImageDecoder decoder;
    Image image;
    std::vector<std::byte> pixels;
    for (std::uint32_t width = 1; width <= 70; ++width) {
      const Samples samples = Drawn(width, 5, 1, 8, width);
      EncodePixels(samples, pixels);
      decoder.Decode(pixels, image);
      for (std::size_t i = 0; i < image.pixels.size(); ++i) {
        REQUIRE(image.pixels[i] == static_cast<std::uint8_t>(samples.data[i / 3]));
      }
    }
  });
}

TEST_CASE("re-encoded pictures have the same bytes on every instruction set", "[transcode]") {
  const std::vector<std::byte> input = Jpeg(130, 90);
  for (ImageMode mode : {ImageMode::kJpeg, ImageMode::kPixels, ImageMode::kLossless}) {
    ImageWorkOptions options;
    options.images = mode;
    options.large_picture_bytes = 1 << 20;
    if (mode != ImageMode::kLossless) options.resize = ResizeTo{40, 0, 0};
    const std::vector<std::byte> want = Made(options, input);
    OnEveryTarget([&] { REQUIRE(Made(options, input) == want); });
  }
}

TEST_CASE("pictures do not depend on those that a worker did before", "[transcode]") {
  std::vector<std::vector<std::byte>> inputs = {Jpeg(50, 40, 20), Jpeg(33, 21, 95), EncodePng(Picture(40, 30)),
                                                EncodePpm(Picture(9, 9)), EncodePng(Drawn(20, 10, 2, 16, 3))};
  for (ImageMode mode : {ImageMode::kLossless, ImageMode::kJpeg, ImageMode::kPixels}) {
    ImageWorkOptions options;
    options.images = mode;
    std::mutex large;
    ImageWorker worker(options, large);
    for (std::size_t i = 0; i < 200; ++i) {
      const std::vector<std::byte>& input = inputs[i * 7 % inputs.size()];
      const WorkedImage worked = worker.Work(input);
      std::vector<std::byte> all(worked.bytes.begin(), worked.bytes.end());
      all.insert(all.end(), worked.side_data.begin(), worked.side_data.end());
      if (i % 20 < 5) REQUIRE(all == Made(options, input));
      if (i % 9 == 0) CHECK_THROWS_AS(worker.Work(Bytes(input).first(input.size() / 2)), Error);
    }
  }
}

TEST_CASE("one large picture is worked on at a time and frees what it took", "[transcode]") {
  ImageWorkOptions options;
  options.images = ImageMode::kLossless;
  options.large_picture_bytes = 1000;  // all of these are large
  std::mutex large;
  const std::vector<std::byte> input = Jpeg(64, 64);
  const std::vector<std::byte> want = Made(options, input);
  std::unique_lock<std::mutex> held(large);
  std::atomic<bool> done = false;
  std::thread thread([&] {
    ImageWorker worker(options, large);
    const WorkedImage worked = worker.Work(input);
    CHECK(std::equal(worked.bytes.begin(), worked.bytes.end(), want.begin()));
    done = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(done);
  held.unlock();
  thread.join();
  CHECK(done);
}

TEST_CASE("the size to shrink to", "[transcode]") {
  const auto shrunk = [](std::uint32_t width, std::uint32_t height, ResizeTo resize) {
    const PictureSize size = ShrunkSize({width, height}, resize);
    return std::pair{size.width, size.height};
  };
  CHECK(shrunk(500, 375, {256, 0, 0}) == std::pair{341u, 256u});
  CHECK(shrunk(375, 500, {256, 0, 0}) == std::pair{256u, 341u});
  CHECK(shrunk(256, 900, {256, 0, 0}) == std::pair{256u, 900u});
  CHECK(shrunk(200, 900, {256, 0, 0}) == std::pair{200u, 900u});
  CHECK(shrunk(65500, 65500, {65499, 0, 0}) == std::pair{65499u, 65499u});
  CHECK(shrunk(300, 300, {0, 224, 100}) == std::pair{224u, 100u});
  CHECK(shrunk(300, 99, {0, 224, 100}) == std::pair{300u, 99u});
  CHECK(shrunk(224, 100, {0, 224, 100}) == std::pair{224u, 100u});
}

TEST_CASE("JPEGs too large for their format are refused", "[transcode]") {
  Image line{65501, 1, std::vector<std::uint8_t>(65501 * 3)};
  std::vector<std::byte> out, side_data;
  CHECK_THROWS_WITH(Transcoder().EncodeJpeg(line, false, 90, 420, out, side_data),
                    Contains("cannot be wider or higher than 65500"));
}

TEST_CASE("a picture over the limit is refused before memory is taken", "[transcode]") {
  const std::vector<std::byte> jpeg = Jpeg(50, 40);
  Transcoder transcoder(ImageLimits{1999});
  std::vector<std::byte> out, side_data;
  Samples samples;
  CHECK_THROWS_WITH(transcoder.JpegToBaseline(jpeg, out, side_data),
                    Contains("50x40 = 2000 pixels are over the limit"));
  CHECK_THROWS_WITH(transcoder.Decode(jpeg, samples), Contains("over the limit"));
  std::vector<std::byte> pixels;
  EncodePixels(Drawn(50, 40, 1, 8, 1), pixels);
  CHECK_THROWS_WITH(DecodePixels(pixels, ImageLimits{1999}, samples), Contains("over the limit"));
}

TEST_CASE("a colour profile is known by its description alone", "[icc]") {
  std::vector<std::byte> profile(200);
  CHECK_FALSE(image::IsSrgbProfile(profile));
  profile[131] = std::byte{1};
  const std::string tag("desc\0\0\0\x90\0\0\0\x14", 12);
  std::copy(AsBytes(tag).begin(), AsBytes(tag).end(), profile.begin() + 132);
  const std::string name("\0s\0R\0G\0B", 8);
  std::copy(AsBytes(name).begin(), AsBytes(name).end(), profile.begin() + 150);
  CHECK(image::IsSrgbProfile(profile));
  for (std::size_t size = 0; size < 164; ++size) CHECK_FALSE(image::IsSrgbProfile(Bytes(profile).first(size)));
  for (std::size_t at : {128, 136, 140}) {  // counts and places that leave the profile
    std::vector<std::byte> bent = profile;
    bent[at] = std::byte{0xFF};
    CHECK_NOTHROW(image::IsSrgbProfile(bent));
  }
}

TEST_CASE("damaged pictures are refused or worked on, in every mode", "[transcode][fuzz]") {
  std::vector<std::vector<std::byte>> seeds = {Jpeg(40, 30), EncodePng(Picture(20, 14)),
                                               EncodePng(Drawn(9, 7, 4, 16, 1)), EncodePpm(Picture(9, 9))};
  for (auto [channels, depth] : {std::pair{1, 8}, std::pair{3, 8}, std::pair{2, 16}}) {
    Samples samples = Drawn(20, 14, channels, depth, 5);
    if (depth == 16) samples.maximum = 999;
    seeds.emplace_back();
    EncodePixels(samples, seeds.back());
  }
  std::mt19937 random(11);
  std::mutex large;
  Transcoder transcoder;
  Samples samples;
  ImageDecoder decoder;
  Image image;
  for (ImageMode mode : {ImageMode::kLossless, ImageMode::kJpeg, ImageMode::kPixels}) {
    ImageWorkOptions options;
    options.images = mode;
    options.limits.max_pixels = 1 << 20;
    if (mode != ImageMode::kLossless) options.resize = ResizeTo{0, 8, 6};
    ImageWorker worker(options, large);
    for (const std::vector<std::byte>& seed : seeds) {
      for (int round = 0; round < 300; ++round) {
        std::vector<std::byte> bent = seed;
        for (std::uint32_t i = 1 + random() % 4; i > 0; --i)
          bent[random() % bent.size()] = static_cast<std::byte>(random());
        if (random() % 3 == 0) bent.resize(random() % (bent.size() + 1));
        try {
          const WorkedImage worked = worker.Work(bent);
          decoder.Decode(worked.bytes, image);  // what was accepted can be read
          CHECK(image.width == worked.info.width);
          transcoder.Decode(worked.bytes, samples);
        } catch (const Error& error) {
          CHECK(error.code() == ErrorCode::kBadInput);
          CHECK_THAT(error.what(), !Contains("without loss"));
        }
      }
    }
  }
}
