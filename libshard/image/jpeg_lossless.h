// JPEGs written anew with the coefficients they have.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "libshard/image/codec.h"

namespace shardpack::image {

// Keeps libjpeg objects between pictures. Not thread-safe.
class JpegRewriter {
 public:
  JpegRewriter();
  ~JpegRewriter();
  JpegRewriter(const JpegRewriter&) = delete;
  JpegRewriter& operator=(const JpegRewriter&) = delete;

  // See Transcoder::JpegToBaseline(). `info` is what ProbeJpeg() gives.
  bool ToBaseline(Bytes jpeg, const StoredInfo& info, std::vector<std::byte>& out);

  // Whether both have the same components, quantisation tables and coefficients.
  bool SameCoefficients(Bytes a, Bytes b);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Where each row of MCUs begins in a JPEG of one scan with a restart marker after each of them
// (docs/formats/pixels.md): what Transcoder calls `side_data`.
void RowPositions(Bytes jpeg, std::vector<std::byte>& out);

}  // namespace shardpack::image
