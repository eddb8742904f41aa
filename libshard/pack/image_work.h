// What packing does with one picture: checks it and brings it into the form that --images asks for.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "shardpack/image.h"
#include "shardpack/manifest.h"
#include "shardpack/pack.h"

namespace shardpack {

// The content options of a request that concern pictures.
struct ImageWorkOptions {
  ImageMode images = ImageMode::kKeep;
  int quality = 90;
  Chroma chroma = Chroma::kKeep;
  std::optional<ResizeTo> resize;
  VerifyImages verify = VerifyImages::kDecode;
  ImageLimits limits;
  bool statistics = false;  // fill WorkedImage::sums
  // Pictures whose work takes more memory than this (3 bytes a pixel for looking at them, up to 33 for a lossless form)
  // are worked on one at a time, so that the memory budget holds.
  std::uint64_t large_picture_bytes = 0;
};
// Those of `options`; no statistics, all pictures one at a time.
ImageWorkOptions WorkOptionsOf(const PackOptions& options);

struct WorkedImage {
  ImageInfo info;  // of `bytes`; width and height of the upright picture
  Bytes bytes;  // the encoded image to be stored: the input itself, or a buffer of the worker that its next call reuses
  Bytes side_data;   // as above; empty for none. JPEGs that were written here: where each row of MCUs begins
  ChannelSums sums;  // of the decoded picture as stored (after resizing), where asked for
};

// One a thread.
class ImageWorker {
 public:
  ImageWorker(const ImageWorkOptions& options, std::mutex& large_picture);
  ~ImageWorker();

  // Throws Error with kBadInput. With kLossless and VerifyImages::kDecode the new form is decoded and compared with the
  // input's pixels.
  WorkedImage Work(Bytes input);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The size that `resize` asks for, of an upright picture: its own where it is not larger.
struct PictureSize {
  std::uint32_t width = 0, height = 0;
  friend bool operator==(const PictureSize&, const PictureSize&) = default;
};
PictureSize ShrunkSize(PictureSize picture, const ResizeTo& resize);

// Throws Error with kBadInput where a picture of this encoding lacks the end that its format ends with: a cheap look
// for files that were cut short. Formats without an end pass.
void CheckHasEnd(Encoding encoding, Bytes bytes);

}  // namespace shardpack
