#include "libshard/image/other_formats.h"

#include <magick/api.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

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

void Export(MagickImage& image, const char* format, std::uint8_t* pixels) {
  ExceptionScope exception;
  if (image->colorspace == CMYKColorspace) TransformColorspace(image.get(), RGBColorspace);
  if (DispatchImage(image.get(), 0, 0, image->columns, image->rows, "RGB", CharPixel, pixels, &exception) !=
      MagickPass) {
    ThrowDamage(format, exception);
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
  if (row_bytes == stride && frame.height == info.height) return Export(image, "GIF", pixels);
  std::vector<std::uint8_t> inner(row_bytes * frame.height);
  Export(image, "GIF", inner.data());
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
  Export(image, format, pixels);
}

}  // namespace shardpack::image
