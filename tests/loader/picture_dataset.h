// Datasets of pictures whose pixels the test knows without a decoder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "shardpack/dataset.h"
#include "shardpack/image.h"
#include "shardpack/loader/data_loader.h"
#include "tests/support/shard_builder.h"

namespace shardpack::loader {

// Smooth colours with noise on them, the same for the same seed.
Image MakePicture(std::uint32_t width, std::uint32_t height, std::uint64_t seed);

// What libjpeg itself makes of a picture, and what it decodes that to.
std::vector<std::byte> JpegOf(const Image& picture, int quality);
Image DecodedByLibjpeg(const std::vector<std::byte>& jpeg);

// Pictures of `num_classes` classes in `num_shards` shards; where `jpeg`, every third is a JPEG and every third
// filtered pixels. Record i has label i %
// num_classes, key "NNNNN".
class PictureDataset {
 public:
  struct Options {
    std::uint32_t num_samples = 40, num_classes = 4, num_shards = 3;
    std::uint32_t min_side = 20, max_side = 60;
    bool jpeg = false;  // else PNGs alone
  };
  explicit PictureDataset(const Options& options);

  Dataset Open() const { return Dataset::Open(folder_.path()); }
  const Image& picture(std::uint64_t index) const { return pictures_.at(index); }
  std::int64_t label(std::uint64_t index) const { return static_cast<std::int64_t>(index % num_classes_); }
  std::uint64_t size() const { return pictures_.size(); }

  // Flips one bit of the stored bytes of a record, respectively of the first record row of a shard's index.
  void DamageRecord(std::uint64_t index) const;
  void DamageIndex(std::uint32_t shard) const;
  std::filesystem::path folder() const { return folder_.path(); }

 private:
  test::TempFolder folder_;
  std::uint32_t num_classes_;
  std::vector<Image> pictures_;
};

// A copy of everything a batch holds.
struct BatchCopy {
  std::vector<std::byte> images;
  std::vector<std::int64_t> labels, indices, source_indices;
  std::vector<bool> valid;
  std::uint64_t step = 0, global_valid = 0;
  std::uint32_t num_valid = 0;
  State state_after;
  friend bool operator==(const BatchCopy&, const BatchCopy&) = default;
};
BatchCopy CopyOf(const Batch& batch);
std::vector<BatchCopy> AllBatches(const Dataset& dataset, const LoaderOptions& options, std::uint64_t epoch = 0);

}  // namespace shardpack::loader
