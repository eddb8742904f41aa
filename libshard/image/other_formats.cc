#include "libshard/image/other_formats.h"

#include <magick/api.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "libshard/image/pixels.h"
#include "shardpack/error.h"

namespace shardpack::image {
namespace {

// GraphicsMagick's own set-up, once. It must not take over the program's signals, and a picture never goes to a
// temporary file: what does not fit into memory is an error.
void InitializeOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    ExceptionInfo exception;
    GetExceptionInfo(&exception);
    InitializeMagickEx(nullptr, MAGICK_OPT_NO_SIGNAL_HANDER, &exception);
    DestroyExceptionInfo(&exception);
    SetMagickResourceLimit(DiskResource, 0);
    SetMagickResourceLimit(MapResource, 0);
    SetMagickResourceLimit(ThreadsResource, 1);  // callers decode in parallel already
  });
}

struct ExceptionScope : ExceptionInfo {
  ExceptionScope() { GetExceptionInfo(this); }
  ~ExceptionScope() { DestroyExceptionInfo(this); }
  ExceptionScope(const ExceptionScope&) = delete;
  ExceptionScope& operator=(const ExceptionScope&) = delete;

  // Warnings about metadata are let pass; one that speaks of the picture is damage.
  bool IsDamage() const { return severity >= ErrorException || severity == CorruptImageWarning; }
  std::string Text() const {
    std::string text = reason != nullptr ? reason : "no reason given";
    if (description != nullptr && *description != '\0') text += std::string(" (") + description + ")";
    return text;
  }
};

struct ImageInfoDeleter {
  void operator()(::ImageInfo* info) const { DestroyImageInfo(info); }
};
struct ImageDeleter {
  void operator()(::Image* image) const { DestroyImageList(image); }
};
using MagickImage = std::unique_ptr<::Image, ImageDeleter>;

const char* FormatName(Encoding encoding) {
  switch (encoding) {
    case Encoding::kBmp:
      return "BMP";
    case Encoding::kGif:
      return "GIF";
    default:
      return "TIFF";
  }
}

[[noreturn]] void ThrowDamage(const char* format, const ExceptionScope& exception) {
  ThrowBad(std::string("corrupt ") + format + ": " + exception.Text());
}

MagickImage Read(Bytes bytes, const char* format) {
  InitializeOnce();
  ExceptionScope exception;
  std::unique_ptr<::ImageInfo, ImageInfoDeleter> info(CloneImageInfo(nullptr));
  // The format is given and affirmed: no other coder and no delegate program is ever chosen by looking at bytes or
  // names.
  std::strncpy(info->magick, format, sizeof info->magick - 1);
  info->affirm = MagickTrue;
  info->subimage = 0;
  info->subrange = 1;
  MagickImage image(BlobToImage(info.get(), bytes.data(), bytes.size(), &exception));
  if (image == nullptr || exception.IsDamage()) ThrowDamage(format, exception);
  if (image->exception.severity >= ErrorException) ThrowBad(std::string("corrupt ") + format + ": damaged pixels");
  return image;
}

// `map`: the channels wanted, as GraphicsMagick names them.
void Export(MagickImage& image, const char* format, const char* map, StorageType type, void* samples) {
  ExceptionScope exception;
  if (image->colorspace == CMYKColorspace) TransformColorspace(image.get(), RGBColorspace);
  if (DispatchImage(image.get(), 0, 0, image->columns, image->rows, map, type, samples, &exception) != MagickPass) {
    ThrowDamage(format, exception);
  }
}

void ExportRgb(MagickImage& image, const char* format, std::uint8_t* pixels) {
  Export(image, format, "RGB", CharPixel, pixels);
}

// Samples of more than 8 bits, rounded: GraphicsMagick would cut them.
void ExportRounded(MagickImage& image, const char* format, std::uint8_t* pixels) {
  if (image->colorspace == CMYKColorspace) TransformColorspace(image.get(), RGBColorspace);
  std::vector<std::uint16_t> row(std::size_t{image->columns} * 3);
  for (unsigned long y = 0; y < image->rows; ++y) {
    ExceptionScope exception;
    if (DispatchImage(image.get(), 0, static_cast<long>(y), image->columns, 1, "RGB", ShortPixel, row.data(),
                      &exception) != MagickPass) {
      ThrowDamage(format, exception);
    }
    for (std::uint16_t value : row) *pixels++ = ScaledTo8(value, 65535);
  }
}

void CheckSameSize(const MagickImage& image, const char* format, std::uint32_t width, std::uint32_t height) {
  if (image->columns == width && image->rows == height) return;
  ThrowBad(std::string("corrupt ") + format + ": its headers contradict each other");
}

void DecodeGif(Bytes bytes, const StoredInfo& info, std::uint8_t* pixels) {
  GifFrame frame = FirstGifFrame(bytes);
  MagickImage image = Read(bytes, "GIF");
  CheckSameSize(image, "GIF", frame.width, frame.height);
  std::size_t row_bytes = std::size_t{frame.width} * 3, stride = std::size_t{info.width} * 3;
  if (row_bytes == stride && frame.height == info.height) return ExportRgb(image, "GIF", pixels);
  std::vector<std::uint8_t> inner(row_bytes * frame.height);
  ExportRgb(image, "GIF", inner.data());
  for (std::size_t i = 0; i < stride * info.height; ++i) pixels[i] = frame.background[i % 3];
  for (std::size_t y = 0; y < frame.height; ++y) {
    std::memcpy(pixels + (frame.y + y) * stride + frame.x * std::size_t{3}, inner.data() + y * row_bytes, row_bytes);
  }
}

}  // namespace

void DecodeOther(Bytes bytes, const StoredInfo& info, std::uint8_t* pixels) {
  if (info.encoding == Encoding::kGif) return DecodeGif(bytes, info, pixels);
  if (info.encoding == Encoding::kBmp && IsPackedBmp(bytes)) return DecodePackedBmp(bytes, info, pixels);
  const char* format = FormatName(info.encoding);
  MagickImage image = Read(bytes, format);
  CheckSameSize(image, format, info.width, info.height);
  if (info.bit_depth > 8) return ExportRounded(image, format, pixels);
  ExportRgb(image, format, pixels);
}

namespace {

// What DecodeOther() gives, as samples.
void SamplesOfRgb(Bytes bytes, const StoredInfo& info, Samples& out) {
  out.channels = 3;
  out.bit_depth = 8;
  out.maximum = 0;
  out.data.resize(std::size_t{info.width} * info.height * 3);
  DecodeOther(bytes, info, reinterpret_cast<std::uint8_t*>(out.data.data()));
}

bool IsGreyPixel(const std::byte* rgb) { return rgb[0] == rgb[1] && rgb[0] == rgb[2]; }

// RGB to grey, where that is all there is, with `alpha` behind each pixel, if there is any.
void Repack(const std::vector<std::uint8_t>& alpha, Samples& out) {
  const std::size_t pixels = std::size_t{out.width} * out.height;
  const std::byte* rgb = out.data.data();
  bool grey = true;
  for (std::size_t i = 0; grey && i < pixels; ++i) grey = IsGreyPixel(rgb + 3 * i);
  if (!grey && alpha.empty()) return;
  const std::size_t colours = grey ? 1 : 3;
  out.channels = static_cast<std::uint8_t>(colours + (alpha.empty() ? 0 : 1));
  std::vector<std::byte> packed(pixels * out.channels);
  for (std::size_t i = 0; i < pixels; ++i) {
    std::memcpy(packed.data() + i * out.channels, rgb + 3 * i, colours);
    if (!alpha.empty()) packed[i * out.channels + colours] = static_cast<std::byte>(alpha[i]);
  }
  out.data.swap(packed);
}

// Alpha of the whole canvas; empty where all of it is opaque.
std::vector<std::uint8_t> GifAlpha(Bytes bytes, const StoredInfo& info) {
  const GifFrame frame = FirstGifFrame(bytes);
  if (!frame.transparent) return {};
  MagickImage image = Read(bytes, "GIF");
  CheckSameSize(image, "GIF", frame.width, frame.height);
  std::vector<std::uint8_t> inner(std::size_t{frame.width} * frame.height);
  Export(image, "GIF", "A", CharPixel, inner.data());
  std::vector<std::uint8_t> alpha(std::size_t{info.width} * info.height, 0);
  for (std::size_t y = 0; y < frame.height; ++y) {
    std::memcpy(alpha.data() + (frame.y + y) * info.width + frame.x, inner.data() + y * frame.width, frame.width);
  }
  if (std::all_of(alpha.begin(), alpha.end(), [](std::uint8_t value) { return value == 255; })) alpha.clear();
  return alpha;
}

void DecodeTiff(Bytes bytes, const StoredInfo& info, Samples& out) {
  MagickImage image = Read(bytes, "TIFF");
  CheckSameSize(image, "TIFF", info.width, info.height);
  const bool grey = IsGreyTiff(bytes), alpha = image->matte != MagickFalse, deep = info.bit_depth > 8;
  static constexpr const char* kMaps[2][2] = {{"RGB", "RGBA"}, {"R", "RA"}};
  out.channels = static_cast<std::uint8_t>((grey ? 1 : 3) + (alpha ? 1 : 0));
  out.bit_depth = deep ? 16 : 8;
  out.maximum = deep ? 65535 : 0;  // GraphicsMagick's own samples, to which it scales all others
  out.data.resize(std::size_t{info.width} * info.height * out.channels * (deep ? 2 : 1));
  Export(image, "TIFF", kMaps[grey][alpha], deep ? ShortPixel : CharPixel, out.data.data());
  if constexpr (std::endian::native == std::endian::big) {
    for (std::size_t i = 0; deep && i < out.data.size(); i += 2) std::swap(out.data[i], out.data[i + 1]);
  }
}

}  // namespace

void DecodeOther(Bytes bytes, const StoredInfo& info, Samples& out) {
  if (info.encoding == Encoding::kTiff) return DecodeTiff(bytes, info, out);
  SamplesOfRgb(bytes, info, out);
  Repack(info.encoding == Encoding::kGif ? GifAlpha(bytes, info) : BmpAlpha(bytes), out);
}

}  // namespace shardpack::image
