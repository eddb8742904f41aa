#include "tests/loader/picture_dataset.h"

#include <cmath>
#include <cstdio>
// libjpeg's header needs size_t and FILE before it.
#include <jpeglib.h>

#include <cstdlib>
#include <cstring>

#include "shardpack/loader/philox.h"
#include "shardpack/transcode.h"

namespace shardpack::loader {

Image MakePicture(std::uint32_t width, std::uint32_t height, std::uint64_t seed) {
  Philox random(seed, 0, 0, 1000);
  const double fx = random.Uniform() * 0.4, fy = random.Uniform() * 0.4, phase = random.Uniform() * 6;
  Image image{width, height, std::vector<std::uint8_t>(std::size_t{width} * height * 3)};
  std::size_t at = 0;
  for (std::uint32_t y = 0; y < height; ++y) {
    for (std::uint32_t x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) {
        const double wave = 100 + 80 * std::sin(fx * x + fy * y + phase + c);
        image.pixels[at++] = static_cast<std::uint8_t>(wave + random.Below(60));
      }
    }
  }
  return image;
}

std::vector<std::byte> JpegOf(const Image& picture, int quality) {
  jpeg_error_mgr errors;
  jpeg_compress_struct codec;
  codec.err = jpeg_std_error(&errors);
  jpeg_create_compress(&codec);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&codec, &memory, &size);
  codec.image_width = picture.width;
  codec.image_height = picture.height;
  codec.input_components = 3;
  codec.in_color_space = JCS_RGB;
  jpeg_set_defaults(&codec);
  jpeg_set_quality(&codec, quality, TRUE);
  jpeg_start_compress(&codec, TRUE);
  while (codec.next_scanline < codec.image_height) {
    auto* row = const_cast<JSAMPROW>(picture.pixels.data() + std::size_t{codec.next_scanline} * picture.width * 3);
    jpeg_write_scanlines(&codec, &row, 1);
  }
  jpeg_finish_compress(&codec);
  jpeg_destroy_compress(&codec);
  const auto* bytes = reinterpret_cast<const std::byte*>(memory);
  std::vector<std::byte> jpeg(bytes, bytes + size);
  std::free(memory);
  return jpeg;
}

Image DecodedByLibjpeg(const std::vector<std::byte>& jpeg) {
  jpeg_error_mgr errors;
  jpeg_decompress_struct codec;
  codec.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&codec);
  jpeg_mem_src(&codec, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
  jpeg_read_header(&codec, TRUE);
  codec.out_color_space = JCS_RGB;
  jpeg_start_decompress(&codec);
  Image image{codec.output_width, codec.output_height, {}};
  image.pixels.resize(std::size_t{image.width} * image.height * 3);
  while (codec.output_scanline < codec.output_height) {
    JSAMPROW row = image.pixels.data() + std::size_t{codec.output_scanline} * image.width * 3;
    jpeg_read_scanlines(&codec, &row, 1);
  }
  jpeg_finish_decompress(&codec);
  jpeg_destroy_decompress(&codec);
  return image;
}

PictureDataset::PictureDataset(const Options& o) : num_classes_(o.num_classes) {
  std::vector<test::ShardBuilder> shards(o.num_shards);
  for (std::uint32_t c = 0; c < o.num_classes; ++c)
    shards[0].options.class_names.push_back("class" + std::to_string(c));
  for (auto& shard : shards) shard.options.class_names = shards[0].options.class_names;
  Samples samples;
  for (std::uint32_t i = 0; i < o.num_samples; ++i) {
    Philox random(i, 0, 0, 1001);
    const std::uint32_t spread = o.max_side - o.min_side + 1;
    Image picture = MakePicture(o.min_side + random.Below(spread), o.min_side + random.Below(spread), i);
    test::TestRecord record;
    char key[16];
    std::snprintf(key, sizeof key, "%05u", i);
    record.key = key;
    record.label = label(i);
    record.encoding = Encoding::kPng;
    record.width = picture.width;
    record.height = picture.height;
    if (o.jpeg && i % 3 == 0) {
      record.raw = JpegOf(picture, 90);
      record.encoding = Encoding::kJpeg;
      picture = DecodedByLibjpeg(record.raw);
    } else if (o.jpeg && i % 3 == 1) {
      Transcoder().Decode(EncodePng(picture), samples);
      EncodePixels(samples, record.raw);
      record.encoding = Encoding::kPixels;
    } else {
      record.raw = EncodePng(picture);
    }
    shards[std::uint64_t{i} * o.num_shards / o.num_samples].Add(std::move(record));
    pictures_.push_back(std::move(picture));
  }
  test::WriteDataset(folder_.path(), shards);
}

void PictureDataset::DamageRecord(std::uint64_t index) const {
  const Dataset dataset = Open();
  const Dataset::Place place = dataset.PlaceOf(index);
  const auto path = folder_ / dataset.manifest().shards[place.shard].file;
  auto bytes = test::ReadFile(path);
  bytes[dataset.Info(index).offset + dataset.Info(index).stored_bytes / 2] ^= std::byte{1};
  test::WriteFile(path, bytes);
}

void PictureDataset::DamageIndex(std::uint32_t shard) const {
  const Dataset dataset = Open();
  const auto path = folder_ / dataset.manifest().shards[shard].file;
  for (const auto& section : dataset.shard(shard).sections()) {
    if (section.id != 1) continue;  // record rows: docs/formats/record_shard.md
    auto bytes = test::ReadFile(path);
    bytes[section.offset + 9] ^= std::byte{1};
    test::WriteFile(path, bytes);
  }
}

BatchCopy CopyOf(const Batch& batch) {
  BatchCopy copy;
  const auto count = static_cast<std::size_t>(batch.labels().shape[0]);
  std::size_t bytes = SizeOf(batch.images().dtype);
  for (std::int64_t extent : batch.images().shape) bytes *= static_cast<std::size_t>(extent);
  copy.images.assign(batch.images().data, batch.images().data + bytes);
  const auto column = [&](const Field& field) {
    const auto* values = reinterpret_cast<const std::int64_t*>(field.data);
    return std::vector<std::int64_t>(values, values + count);
  };
  copy.labels = column(batch.labels());
  copy.indices = column(batch.indices());
  copy.source_indices = column(batch.source_indices());
  const auto* valid = reinterpret_cast<const bool*>(batch.valid().data);
  copy.valid.assign(valid, valid + count);
  copy.step = batch.step();
  copy.global_valid = batch.global_valid();
  copy.num_valid = batch.num_valid();
  copy.state_after = batch.state_after();
  return copy;
}

std::vector<BatchCopy> AllBatches(const Dataset& dataset, const LoaderOptions& options, std::uint64_t epoch) {
  DataLoader loader(dataset, options);
  std::vector<BatchCopy> all;
  for (const Batch& batch : loader.Epoch(epoch)) all.push_back(CopyOf(batch));
  return all;
}

}  // namespace shardpack::loader
