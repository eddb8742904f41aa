// Class folders read the plain way: what train_ddp --raw does, as the measure of what packing brings.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "shardpack/image.h"
#include "shardpack/loader/cuda/pixel_math.h"
#include "shardpack/loader/philox.h"
#include "shardpack/loader/transform.h"
#include "shardpack/resize.h"

namespace train_ddp {

// One thread at a time. Errors are shardpack::Error naming the file.
class RawImages {
 public:
  // Lists DIR/CLASS/**; classes and files in byte order, so that a sample's number is the one `shardpack convert` gives
  // it. Hidden files are left out, so is what is not an image by its name's extension.
  RawImages(const std::filesystem::path& folder, shardpack::loader::Transform transform);

  std::uint64_t size() const { return files_.size(); }
  const std::vector<std::string>& classes() const { return classes_; }
  std::int64_t label(std::uint64_t i) const { return files_[i].label; }
  const shardpack::loader::Transform& transform() const { return transform_; }
  std::string Digest() const;  // of names and labels: whether two ranks see the same folder

  // Opens, reads, decodes, resizes and normalises one image into `out`: width x height x 3 bytes in NHWC, or floats in
  // NCHW.
  void Load(std::uint64_t i, std::uint64_t seed, std::uint64_t epoch, std::uint8_t* out);
  void Load(std::uint64_t i, std::uint64_t seed, std::uint64_t epoch, float* out);

 private:
  struct File {
    std::string name;  // below the folder
    std::int64_t label;
  };
  void LoadPixels(std::uint64_t i, std::uint64_t seed, std::uint64_t epoch, std::uint8_t* out);

  std::filesystem::path folder_;
  shardpack::loader::Transform transform_;
  std::vector<File> files_;
  std::vector<std::string> classes_;
  shardpack::loader::NormaliseTable table_;
  std::vector<std::byte> bytes_;
  std::vector<std::uint8_t> pixels_;
  shardpack::Image image_;
  shardpack::ImageDecoder decoder_;
  shardpack::Resizer resizer_;
};

}  // namespace train_ddp
