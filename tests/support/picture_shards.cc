#include "tests/support/picture_shards.h"

#include "shardpack/image.h"
#include "shardpack/transcode.h"

namespace shardpack::test {
namespace {

Image Picture(std::uint32_t width, std::uint32_t height, int seed) {
  Image image{width, height, {}};
  for (std::uint32_t i = 0; i < width * height * 3; ++i)
    image.pixels.push_back(static_cast<std::uint8_t>(i * 7 / width + static_cast<std::uint32_t>(seed) * 31));
  return image;
}

TestRecord Record(const std::string& key, std::int64_t label, Encoding encoding, Codec codec, const Image& image) {
  TestRecord record;
  record.key = key;
  record.label = label;
  record.encoding = encoding;
  record.codec = codec;
  record.width = image.width;
  record.height = image.height;
  if (encoding == Encoding::kPng) {
    record.raw = EncodePng(image);
  } else if (encoding == Encoding::kJpeg) {
    Transcoder().EncodeJpeg(image, false, 90, 420, record.raw, record.side_data);
  } else {
    Samples samples{image.width, image.height, 3, 8, 0, 1, {}};
    for (const std::uint8_t value : image.pixels) samples.data.push_back(std::byte{value});
    EncodePixels(samples, record.raw);
  }
  return record;
}

}  // namespace

ShardBuilder PictureShard(const std::string& prefix, std::uint64_t sync_marker) {
  ShardBuilder shard;
  shard.options.sync_marker = sync_marker;
  shard.options.class_names = {"ant", "bee", "cat"};
  shard.options.dictionary = EncodePng(Picture(9, 9, 3));
  const auto add = [&](const std::string& name, std::int64_t label, Encoding encoding, Codec codec, std::uint32_t size,
                       bool begins_block = false) {
    TestRecord record =
        Record(prefix + "/" + name, label, encoding, codec, Picture(size, size + 3, static_cast<int>(size)));
    record.begins_block = begins_block;
    if (label == 1) record.metadata = R"({"note":")" + name + R"("})";
    shard.Add(std::move(record));
  };
  add("0.png", 0, Encoding::kPng, Codec::kStored, 20);
  add("1.png", 1, Encoding::kPng, Codec::kZstdDictionary, 9);
  add("2.jpg", 2, Encoding::kJpeg, Codec::kStored, 70);
  add("3.bmp", 0, Encoding::kPixels, Codec::kZstd, 31);
  add("4.bmp", 0, Encoding::kPixels, Codec::kZstdBlock, 8, true);
  add("5.png", 1, Encoding::kPng, Codec::kZstdBlock, 7);
  add("6.bmp", 2, Encoding::kPixels, Codec::kZstdBlock, 6);
  add("7.png", 0, Encoding::kPng, Codec::kZstdBlock, 5, true);
  add("8.bmp", 1, Encoding::kPixels, Codec::kZstdBlock, 4);
  add("9.png", 2, Encoding::kPng, Codec::kZstdDictionary, 11);
  add("10.jpg", 2, Encoding::kJpeg, Codec::kStored, 90);
  return shard;
}

}  // namespace shardpack::test
