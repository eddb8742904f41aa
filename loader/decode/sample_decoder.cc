#include "loader/decode/sample_decoder.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

#include "shardpack/error.h"

namespace shardpack::loader {
namespace {

using Clock = std::chrono::steady_clock;
double SecondsBetween(Clock::time_point a, Clock::time_point b) { return std::chrono::duration<double>(b - a).count(); }

std::string SizeText(std::uint32_t width, std::uint32_t height) {
  return std::to_string(width) + "x" + std::to_string(height);
}

// Without a transform all pictures fill the same shape; another size is the caller's mistake, not damage.
void CheckFits(const Transform& transform, const RecordInfo& info) {
  if (transform.kind != Transform::Kind::kNone) return;
  if (info.width == transform.width && info.height == transform.height) return;
  throw Error(ErrorCode::kInvalidArgument, "without a transform all images must have one size: this one has " +
                                               SizeText(info.width, info.height) + " pixels, the first " +
                                               SizeText(transform.width, transform.height));
}

}  // namespace

RowRange RowsOfWindow(const Geometry& geometry, std::uint32_t window_height) {
  const std::uint32_t rows = geometry.crop_height;
  if (window_height == geometry.resized_height) return {0, rows};
  const double scale = static_cast<double>(rows) / geometry.resized_height;
  const double support = std::max(scale, 1.0);  // of the triangle filter, in source rows
  const double first = std::floor((geometry.window_y + 0.5) * scale - support) - 1;
  const double end = std::ceil((geometry.window_y + window_height - 0.5) * scale + support) + 1;
  return {static_cast<std::uint32_t>(std::clamp(first, 0.0, rows - 1.0)),
          static_cast<std::uint32_t>(std::clamp(end, 1.0, static_cast<double>(rows)))};
}

std::int64_t SampleDecoder::Produce(const Dataset& dataset, std::uint64_t index, const Transform& transform,
                                    Philox random, const PictureWriter& writer, std::byte* out, StageCosts& costs) {
  const auto start = Clock::now();
  const RecordInfo info = dataset.Info(index);
  if (info.width == 0 || info.height == 0) throw Error(ErrorCode::kCorruption, "the index gives the image no pixels");
  CheckFits(transform, info);
  const Geometry geometry = transform.Draw(info.width, info.height, random);
  dataset.Read(index, bytes_);
  const auto read = Clock::now();
  costs.read += SecondsBetween(start, read);
  costs.bytes_read += info.stored_bytes;

  DecodeFor(geometry, info, writer.height());
  const auto decoded = Clock::now();
  costs.decode += SecondsBetween(read, decoded);

  WriteFor(geometry, writer, out);
  costs.transform += SecondsBetween(decoded, Clock::now());
  return info.label;
}

void SampleDecoder::DecodeFor(const Geometry& geometry, const RecordInfo& info, std::uint32_t window_height) {
  const RowRange rows = RowsOfWindow(geometry, window_height);
  if (rows.end - rows.first == info.height) {
    decoder_.Decode(bytes_, image_);
  } else {
    decoder_.DecodeRows(bytes_, geometry.crop_y + rows.first, geometry.crop_y + rows.end, image_);
  }
  if (image_.width != info.width || image_.height != info.height) {
    throw Error(ErrorCode::kCorruption, "the index says " + SizeText(info.width, info.height) +
                                            " pixels, the image has " + SizeText(image_.width, image_.height));
  }
}

void SampleDecoder::WriteFor(const Geometry& geometry, const PictureWriter& writer, std::byte* out) {
  const std::uint32_t width = writer.width(), height = writer.height();
  if (width == image_.width && height == image_.height && geometry.resized_width == width &&
      geometry.resized_height == height && geometry.crop_width == width && geometry.crop_height == height) {
    writer.Write(image_.pixels.data(), geometry.flip, out);
    return;
  }
  PixelView view;
  view.stride_bytes = std::size_t{image_.width} * 3;
  view.data = image_.pixels.data() + geometry.crop_y * view.stride_bytes + std::size_t{geometry.crop_x} * 3;
  view.width = geometry.crop_width;
  view.height = geometry.crop_height;
  const Resizer::Window window{geometry.window_x, geometry.window_y, width, height};
  if (writer.IsCopy(geometry.flip)) {
    resizer_.Resize(view, geometry.resized_width, geometry.resized_height, window,
                    reinterpret_cast<std::uint8_t*>(out));
    return;
  }
  resized_.resize(std::size_t{width} * height * 3);
  resizer_.Resize(view, geometry.resized_width, geometry.resized_height, window, resized_.data());
  writer.Write(resized_.data(), geometry.flip, out);
}

}  // namespace shardpack::loader
