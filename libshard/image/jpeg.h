// JPEG through libjpeg-turbo.
#pragma once

#include <cstdint>
#include <memory>

#include "libshard/image/codec.h"

namespace shardpack::image {

// Reads markers up to the first scan, with libjpeg's tolerances and verdicts.
StoredInfo ProbeJpeg(Bytes bytes);
// See JpegChroma().
int ProbeChroma(Bytes bytes);

// Keeps one libjpeg object: making one for each picture costs more than a small picture's decoding.
class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // Fills `rows` of `pixels`, which is the whole picture's memory, with RGB. The file is read to its end marker where
  // the rows go down to the last.
  void Decode(Bytes bytes, const StoredInfo& info, Rows rows, std::uint8_t* pixels);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardpack::image
