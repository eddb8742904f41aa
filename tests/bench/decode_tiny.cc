// How much faster tiny pictures decode from a shard than from their files:  bench_decode_tiny FOLDER [ROUNDS]
//
// The PNG files under FOLDER are turned into filtered pixels and compressed as `convert --images lossless` does, with
// the codec and dictionary that it chooses. Each round decodes all files and then all records, from memory, on one
// thread, to 8-bit RGB, with libpng's simplest use as a third; one JSON line says nanoseconds of CPU a picture
// (medians), and their ratio with the least and largest of the rounds.
#include <png.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "libshard/pack/codec_choice.h"
#include "libshard/store/compression.h"
#include "shardpack/transcode.h"
#include "tests/bench/clock.h"

namespace {

using shardpack::Bytes;
using shardpack::Codec;

struct Record {
  std::vector<std::byte> file, stored;
  std::size_t raw_bytes = 0;
  Codec codec = Codec::kStored;
};

std::vector<std::byte> ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const Bytes bytes = shardpack::AsBytes(text);
  return {bytes.begin(), bytes.end()};
}

struct Set {
  std::vector<Record> records;
  shardpack::CodecPlan plan;
};

Set Load(const char* folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".png") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  Set set;
  shardpack::Transcoder transcoder;
  shardpack::Samples samples;
  std::vector<shardpack::SampleRecord> sample;
  for (const auto& path : paths) {
    set.records.push_back({ReadFile(path), {}, 0, Codec::kStored});
    transcoder.Decode(set.records.back().file, samples);
    sample.push_back({shardpack::Encoding::kPixels, {}});
    shardpack::EncodePixels(samples, sample.back().bytes);
  }
  set.plan = shardpack::ChooseCodecs(sample, sample.size(), 1, shardpack::Compression::kAuto, {}, {});
  shardpack::RecordCompressor compressor(set.plan);
  for (std::size_t i = 0; i < sample.size(); ++i) {
    Record& record = set.records[i];
    record.raw_bytes = sample[i].bytes.size();
    record.codec = compressor.Compress(shardpack::Encoding::kPixels, sample[i].bytes, record.stored);
    if (record.codec == Codec::kStored) record.stored = sample[i].bytes;
  }
  return set;
}

double Middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Decoder {
 public:
  explicit Decoder(const Set& set) : set_(set), dictionary_(set.plan.dictionary) {}

  void Files() {
    for (const Record& record : set_.records) decoder_.Decode(record.file, picture_);
  }

  void Records() {
    for (const Record& record : set_.records) Decode(record);
  }

  // libpng's simplified interface, which asks for no checks of ours.
  void LibpngAlone() {
    for (const Record& record : set_.records) {
      png_image image;
      std::memset(&image, 0, sizeof image);
      image.version = PNG_IMAGE_VERSION;
      png_image_begin_read_from_memory(&image, record.file.data(), record.file.size());
      image.format = PNG_FORMAT_RGB;
      picture_.pixels.resize(PNG_IMAGE_SIZE(image));
      png_image_finish_read(&image, nullptr, picture_.pixels.data(), 0, nullptr);
    }
  }

  bool Same() {
    for (const Record& record : set_.records) {
      decoder_.Decode(record.file, picture_);
      const auto want = picture_.pixels;
      Decode(record);
      if (picture_.pixels != want) return false;
    }
    return true;
  }

 private:
  void Decode(const Record& record) {
    Bytes bytes = record.stored;
    if (record.codec != Codec::kStored) {
      const auto* dictionary = record.codec == Codec::kZstdDictionary ? &dictionary_ : nullptr;
      if (!shardpack::Decompress(record.stored, record.raw_bytes, dictionary, raw_)) std::abort();
      bytes = raw_;
    }
    decoder_.Decode(bytes, picture_);
  }

  const Set& set_;
  shardpack::DecompressionDictionary dictionary_;
  shardpack::ImageDecoder decoder_;
  shardpack::Image picture_;
  std::vector<std::byte> raw_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "bench_decode_tiny FOLDER [ROUNDS]\n";
    return 2;
  }
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 9;
  const Set set = Load(argv[1]);
  if (set.records.empty()) {
    std::cerr << "no PNG files under " << argv[1] << "\n";
    return 3;
  }
  Decoder decoder(set);
  if (!decoder.Same()) {
    std::cerr << "the pixels differ\n";
    return 3;
  }
  std::vector<double> files, records, libpng, ratios;
  const double count = static_cast<double>(set.records.size());
  for (int round = 0; round < rounds; ++round) {
    const auto timed = [&](auto&& work) {
      const shardpack::bench::Stopwatch watch;
      work();
      return watch.Cpu() / count * 1e9;
    };
    files.push_back(timed([&] { decoder.Files(); }));
    records.push_back(timed([&] { decoder.Records(); }));
    libpng.push_back(timed([&] { decoder.LibpngAlone(); }));
    ratios.push_back(std::min(files.back(), libpng.back()) / records.back());
  }
  std::uint64_t file_bytes = 0, stored_bytes = set.plan.dictionary.size();
  std::size_t with_dictionary = 0;
  for (const Record& record : set.records) {
    file_bytes += record.file.size();
    stored_bytes += record.stored.size();
    with_dictionary += record.codec == Codec::kZstdDictionary ? 1 : 0;
  }
  std::cout << nlohmann::ordered_json{{"pictures", set.records.size()},
                                      {"file_bytes", file_bytes},
                                      {"stored_bytes", stored_bytes},
                                      {"dictionary_bytes", set.plan.dictionary.size()},
                                      {"with_dictionary", with_dictionary},
                                      {"png_ns", Middle(files)},
                                      {"libpng_alone_ns", Middle(libpng)},
                                      {"record_ns", Middle(records)},
                                      {"ratio", Middle(ratios)},
                                      {"ratio_least", *std::min_element(ratios.begin(), ratios.end())},
                                      {"ratio_largest", *std::max_element(ratios.begin(), ratios.end())}}
                   .dump()
            << "\n";
}
