// From one record to one picture of the batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "loader/decode/picture_writer.h"
#include "shardpack/dataset.h"
#include "shardpack/image.h"
#include "shardpack/loader/philox.h"
#include "shardpack/loader/transform.h"
#include "shardpack/resize.h"

namespace shardpack::loader {

// Seconds and bytes by stage.
struct StageCosts {
  double read = 0, decode = 0, transform = 0;
  std::uint64_t bytes_read = 0;

  void Add(const StageCosts& other) {
    read += other.read;
    decode += other.decode;
    transform += other.transform;
    bytes_read += other.bytes_read;
  }
};

// Rows of the crop that the window of the resized picture is computed from, with one row to spare on either side:
// [first, end).
struct RowRange {
  std::uint32_t first = 0, end = 0;
};
RowRange RowsOfWindow(const Geometry& geometry, std::uint32_t window_height);

// Codec state and scratch memory of one thread; they grow to the largest picture seen and stay.
class SampleDecoder {
 public:
  explicit SampleDecoder(ImageLimits limits) : decoder_(limits) {}

  // Reads record `index` into private memory (where it is checked), decodes what `transform` wants of it and writes the
  // picture to `out`. Adds to `costs`. Returns the record's label. Throws Error: of the record, or kInvalidArgument
  // where its size does not fit Transform::Kind::kNone.
  std::int64_t Produce(const Dataset& dataset, std::uint64_t index, const Transform& transform, Philox random,
                       const PictureWriter& writer, std::byte* out, StageCosts& costs);

 private:
  void DecodeFor(const Geometry& geometry, const RecordInfo& info, std::uint32_t window_height);
  void WriteFor(const Geometry& geometry, const PictureWriter& writer, std::byte* out);

  ImageDecoder decoder_;
  Resizer resizer_;
  std::vector<std::byte> bytes_;
  Image image_;
  std::vector<std::uint8_t> resized_;
};

}  // namespace shardpack::loader
