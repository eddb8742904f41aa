// Writing JPEGs through libjpeg-turbo.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "shardpack/image.h"

namespace shardpack::image {

// Keeps one libjpeg object between pictures. Not thread-safe.
class JpegEncoder {
 public:
  JpegEncoder();
  ~JpegEncoder();
  JpegEncoder(const JpegEncoder&) = delete;
  JpegEncoder& operator=(const JpegEncoder&) = delete;

  // See Transcoder::EncodeJpeg().
  void Encode(const Image& image, bool grey, int quality, int chroma, std::vector<std::byte>& out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardpack::image
