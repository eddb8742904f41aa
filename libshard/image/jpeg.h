// JPEG through libjpeg-turbo.
#pragma once

#include <cstdint>
#include <memory>

#include "libshard/image/codec.h"

namespace shardpack::image {

// Reads markers up to the first scan, with libjpeg's tolerances and verdicts.
StoredInfo ProbeJpeg(Bytes bytes);

// Keeps one libjpeg object: making one for each picture costs more than a small picture's decoding.
class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // Fills rows [0, end_row) of `pixels` with RGB. The file is read to its end marker where `end_row` is the height.
  void Decode(Bytes bytes, const StoredInfo& info, std::uint32_t end_row, std::uint8_t* pixels);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardpack::image
