#include "shardpack/image.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "libshard/image/codec.h"
#include "libshard/image/jpeg.h"
#include "libshard/image/orient.h"
#include "libshard/image/other_formats.h"
#include "libshard/image/pixels.h"
#include "libshard/image/png.h"
#include "libshard/image/pnm.h"
#include "libshard/image/webp.h"
#include "shardpack/error.h"

namespace shardpack {
namespace image {

void ThrowBad(const std::string& reason) { throw Error(ErrorCode::kBadInput, reason); }
void ThrowTruncated(const std::string& what) { ThrowBad("truncated: " + what); }

namespace {

std::string SizeText(const StoredInfo& info) { return std::to_string(info.width) + "x" + std::to_string(info.height); }

}  // namespace

void CheckSize(const StoredInfo& info, const ImageLimits& limits) {
  if (info.width == 0 || info.height == 0) ThrowBad("a picture of " + SizeText(info) + " pixels");
  std::uint64_t pixels = std::uint64_t{info.width} * info.height;
  if (pixels > limits.max_pixels) {
    ThrowBad(SizeText(info) + " = " + std::to_string(pixels) + " pixels are over the limit of " +
             std::to_string(limits.max_pixels) + " (see --max-pixels)");
  }
}

namespace {

bool LooksLikeTiff(std::string_view text) {
  // The second two are BigTIFF, refused by its name.
  for (std::string_view start : {"II*\0", "MM\0*", "II+\0", "MM\0+"}) {
    if (text.starts_with(std::string_view(start.data(), 4))) return true;
  }
  return false;
}

// Two letters are too little to know a BMP by; the size of its second header, of which there are few kinds, helps.
bool LooksLikeBmp(Bytes bytes) {
  if (!AsText(bytes).starts_with("BM")) return false;
  if (!Has(bytes, 14, 4)) return true;
  std::uint32_t size = U32(bytes, 14, false);
  return size >= 12 && size <= 124;
}

bool LooksLikePnm(std::string_view text) {
  if (text.size() < 3 || text[0] != 'P' || text[1] < '1' || text[1] > '6') return false;
  return text[2] == ' ' || (text[2] >= '\t' && text[2] <= '\r') || text[2] == '#';
}

StoredInfo ProbeStored(Bytes bytes, Encoding encoding) {
  switch (encoding) {
    case Encoding::kJpeg:
      return ProbeJpeg(bytes);
    case Encoding::kPng:
      return ProbePng(bytes);
    case Encoding::kWebp:
      return ProbeWebp(bytes);
    case Encoding::kBmp:
      return ProbeBmp(bytes);
    case Encoding::kGif:
      return ProbeGif(bytes);
    case Encoding::kTiff:
      return ProbeTiff(bytes);
    case Encoding::kPnm:
      return ProbePnm(bytes);
    case Encoding::kPixels:
      return ProbePixels(bytes);
    default:
      ThrowBad("not an image of a known format");
  }
}

}  // namespace

StoredInfo CheckedStored(Bytes bytes, const ImageLimits& limits) {
  if (bytes.empty()) ThrowBad("empty file (0 bytes)");
  StoredInfo info = ProbeStored(bytes, DetectEncoding(bytes));
  CheckSize(info, limits);
  if (info.fewest_bytes > bytes.size()) {
    ThrowTruncated(std::to_string(bytes.size()) + " bytes cannot hold " + SizeText(info) + " pixels");
  }
  return info;
}

}  // namespace image

using image::StoredInfo;

Encoding DetectEncoding(Bytes bytes) {
  std::string_view text = AsText(bytes);
  if (text.starts_with("\xff\xd8\xff")) return Encoding::kJpeg;
  if (text.starts_with("\x89PNG\r\n\x1a\n")) return Encoding::kPng;
  if (text.starts_with("RIFF") && text.size() >= 12 && text.substr(8, 4) == "WEBP") return Encoding::kWebp;
  if (text.starts_with("GIF87a") || text.starts_with("GIF89a")) return Encoding::kGif;
  if (image::LooksLikeTiff(text)) return Encoding::kTiff;
  if (image::LooksLikeBmp(bytes)) return Encoding::kBmp;
  if (text.starts_with(image::kPixelsMagic)) return Encoding::kPixels;
  if (image::LooksLikePnm(text)) return Encoding::kPnm;
  return Encoding::kUnknown;
}

ImageInfo ProbeImage(Bytes bytes, const ImageLimits& limits) {
  ImageInfo info = image::CheckedStored(bytes, limits);
  if (image::SwapsAxes(info.orientation)) std::swap(info.width, info.height);
  return info;
}

struct ImageDecoder::Impl {
  ImageLimits limits;
  image::JpegDecoder jpeg;
  image::PixelsDecoder filtered;
  std::vector<std::uint8_t> stored;  // pixels of a picture that is to be turned

  void DecodeStored(Bytes bytes, const StoredInfo& info, image::Rows rows, std::uint8_t* pixels);
};

void ImageDecoder::Impl::DecodeStored(Bytes bytes, const StoredInfo& info, image::Rows rows, std::uint8_t* pixels) {
  switch (info.encoding) {
    case Encoding::kJpeg:
      return jpeg.Decode(bytes, info, rows, pixels);
    case Encoding::kPng:
      return image::DecodePng(bytes, info, pixels);
    case Encoding::kWebp:
      return image::DecodeWebp(bytes, info, pixels);
    case Encoding::kPnm:
      return image::DecodePnm(bytes, info, pixels);
    case Encoding::kPixels:
      return filtered.Decode(bytes, info, rows, pixels);
    default:
      return image::DecodeOther(bytes, info, pixels);
  }
}

ImageDecoder::ImageDecoder(ImageLimits limits) : impl_(std::make_unique<Impl>()) { impl_->limits = limits; }
ImageDecoder::ImageDecoder(ImageDecoder&&) noexcept = default;
ImageDecoder& ImageDecoder::operator=(ImageDecoder&&) noexcept = default;
ImageDecoder::~ImageDecoder() = default;

void ImageDecoder::Decode(Bytes bytes, Image& out) { DecodeRows(bytes, 0, UINT32_MAX, out); }

void ImageDecoder::DecodeRows(Bytes bytes, std::uint32_t first_row, std::uint32_t end_row, Image& out) {
  assert(first_row <= end_row);
  StoredInfo info = image::CheckedStored(bytes, impl_->limits);
  std::size_t size = std::size_t{info.width} * info.height * 3;
  bool swaps = image::SwapsAxes(info.orientation);
  out.width = swaps ? info.height : info.width;
  out.height = swaps ? info.width : info.height;
  out.pixels.resize(size);
  bool same_rows = info.orientation <= 2;  // upright, or mirrored left to right
  image::Rows rows{0, info.height};
  if (same_rows) rows = {std::min(first_row, info.height), std::min(end_row, info.height)};
  if (info.orientation == 1) return impl_->DecodeStored(bytes, info, rows, out.pixels.data());
  impl_->stored.resize(size);
  impl_->DecodeStored(bytes, info, rows, impl_->stored.data());
  image::Orient(impl_->stored.data(), info.width, info.height, info.orientation, out.pixels.data());
}

}  // namespace shardpack
