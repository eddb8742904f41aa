// What the classes promise beside pixels, which pixels_test.py compares with Pillow.
#include "shardpack/image.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "libshard/image/exif.h"
#include "libshard/image/orient.h"
#include "shardpack/error.h"

using namespace shardpack;
using Catch::Matchers::Contains;

namespace {

Image Checkered(std::uint32_t width, std::uint32_t height) {
  Image image{width, height, {}};
  for (std::uint32_t i = 0; i < width * height * 3; ++i)
    image.pixels.push_back(static_cast<std::uint8_t>(i * 37 + i / 11));
  return image;
}

std::string Ppm(int width, int height) {
  return "P6 " + std::to_string(width) + " " + std::to_string(height) + " 255\n" + std::string(width * height * 3, 'x');
}

// A 2 x 1 GIF, by hand: colours 1 and 2 of four.
constexpr char kGifBytes[] =
    "GIF89a\2\0\1\0\x81\0\0"
    "\0\0\0"
    "\xff\0\0"
    "\0\xff\0"
    "\0\0\xff"
    "\x2c\0\0\0\0\2\0\1\0\0"
    "\2\2\x8c\x0a\0"
    ";";
const std::string kGif(kGifBytes, sizeof kGifBytes - 1);

std::string Reason(Bytes bytes, ImageLimits limits = {}) {
  try {
    ProbeImage(bytes, limits);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kBadInput);
    return error.reason();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("the first bytes decide the format", "[image]") {
  CHECK(DetectEncoding(AsBytes("\xff\xd8\xff\xe0")) == Encoding::kJpeg);
  CHECK(DetectEncoding(AsBytes("\x89PNG\r\n\x1a\n")) == Encoding::kPng);
  CHECK(DetectEncoding(AsBytes(std::string_view("RIFF\0\0\0\0WEBP", 12))) == Encoding::kWebp);
  CHECK(DetectEncoding(AsBytes(std::string_view("RIFF\0\0\0\0WAVE", 12))) == Encoding::kUnknown);
  CHECK(DetectEncoding(AsBytes("GIF87a")) == Encoding::kGif);
  CHECK(DetectEncoding(AsBytes(std::string_view("II*\0", 4))) == Encoding::kTiff);
  CHECK(DetectEncoding(AsBytes(std::string_view("MM\0*", 4))) == Encoding::kTiff);
  CHECK(DetectEncoding(AsBytes("P5 1 1 255\n")) == Encoding::kPnm);
  CHECK(DetectEncoding(AsBytes("P7 ")) == Encoding::kUnknown);
  CHECK(DetectEncoding(AsBytes("BMW and other makers of cars")) == Encoding::kUnknown);
  CHECK(DetectEncoding({}) == Encoding::kUnknown);
}

TEST_CASE("a picture of as many pixels as the limit is read and of one more refused", "[image]") {
  CHECK(Reason(AsBytes(Ppm(10, 10)), {100}) == "accepted");
  CHECK(Reason(AsBytes(Ppm(10, 10)), {99}) == "10x10 = 100 pixels are over the limit of 99 (see --max-pixels)");
  Image image;
  CHECK_THROWS_WITH(ImageDecoder({99}).Decode(AsBytes(Ppm(10, 10)), image), Contains("over the limit"));
  CHECK(image.pixels.empty());
}

TEST_CASE("no bytes, no format and no pixels have words of their own", "[image]") {
  CHECK(Reason({}) == "empty file (0 bytes)");
  CHECK(Reason(AsBytes("<html>")) == "not an image of a known format");
  CHECK_THAT(Reason(AsBytes("P6 0 5 255\n")), Contains("0x5"));
}

TEST_CASE("a decoder goes on after a bad picture", "[image]") {
  ImageDecoder decoder;
  Image image;
  std::vector<std::byte> png = EncodePng(Checkered(9, 5));
  std::string jpeg_start("\xff\xd8\xff\xdb\0\3\0", 7);
  for (int i = 0; i < 3; ++i) {
    CHECK_THROWS_AS(decoder.Decode(AsBytes(jpeg_start), image), Error);
    CHECK_THROWS_AS(decoder.Decode(Bytes(png).first(png.size() - 13), image), Error);
    decoder.Decode(png, image);
    CHECK(image.pixels == Checkered(9, 5).pixels);
  }
}

TEST_CASE("a picture's memory is used again for the next", "[image]") {
  ImageDecoder decoder;
  Image image;
  decoder.Decode(AsBytes(Ppm(40, 40)), image);
  const std::uint8_t* before = image.pixels.data();
  decoder.Decode(AsBytes(Ppm(20, 30)), image);
  CHECK(image.pixels.data() == before);
  CHECK(image.pixels.size() == 20 * 30 * 3);
}

TEST_CASE("decoders of several threads do not disturb each other", "[image][threads]") {
  std::vector<std::byte> png = EncodePng(Checkered(33, 21));
  Image gif;
  ImageDecoder().Decode(AsBytes(kGif), gif);
  REQUIRE(gif.pixels == std::vector<std::uint8_t>{255, 0, 0, 0, 255, 0});
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      ImageDecoder decoder;
      Image image;
      for (int i = 0; i < 50; ++i) {
        decoder.Decode(AsBytes(kGif), image);
        wrong += image.pixels != gif.pixels;
        decoder.Decode(png, image);
        wrong += image.pixels != Checkered(33, 21).pixels;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("turning by an orientation and by its inverse gives the picture back", "[image]") {
  Image image = Checkered(7, 4);
  const Orientation inverse[9] = {0, 1, 2, 3, 4, 5, 8, 7, 6};
  for (Orientation o = 1; o <= 8; ++o) {
    std::vector<std::uint8_t> turned(image.pixels.size()), back(image.pixels.size());
    image::Orient(image.pixels.data(), 7, 4, o, turned.data());
    bool swaps = image::SwapsAxes(o);
    image::Orient(turned.data(), swaps ? 4 : 7, swaps ? 7 : 4, inverse[o], back.data());
    CHECK(back == image.pixels);
  }
}

TEST_CASE("an EXIF block cut anywhere counts as upright", "[image][exif]") {
  const std::string block("MM\0*\0\0\0\x08\0\1\x01\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0", 26);
  CHECK(image::ExifOrientation(AsBytes(block)) == 6);
  for (std::size_t size = 0; size < 22; ++size) CHECK(image::ExifOrientation(AsBytes(block).first(size)) == 1);
}

TEST_CASE("the same picture is encoded to the same bytes", "[image]") {
  CHECK(EncodePng(Checkered(31, 17)) == EncodePng(Checkered(31, 17)));
  std::vector<std::byte> ppm = EncodePpm({2, 1, {1, 2, 3, 4, 5, 6}});
  CHECK(AsText(ppm) == std::string("P6\n2 1\n255\n\1\2\3\4\5\6"));
}
