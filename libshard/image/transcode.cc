#include "shardpack/transcode.h"

#include "libshard/image/codec.h"
#include "libshard/image/jpeg.h"
#include "libshard/image/jpeg_encode.h"
#include "libshard/image/jpeg_lossless.h"
#include "libshard/image/other_formats.h"
#include "libshard/image/png.h"
#include "libshard/image/pnm.h"
#include "libshard/image/webp.h"

namespace shardpack {
namespace {

// A palette of greys alone is what a grey picture is in a format, or kind of it, that knows no other.
void MakeGrey(Samples& samples) {
  const std::size_t channels = samples.channels, pixels = samples.data.size() / channels;
  std::byte* data = samples.data.data();
  for (std::size_t i = 0; i < pixels * channels; i += channels) {
    if (data[i] != data[i + 1] || data[i] != data[i + 2]) return;
  }
  const std::size_t left = channels - 2;
  for (std::size_t i = 0; i < pixels; ++i) {
    data[i * left] = data[i * channels];
    if (left == 2) data[i * left + 1] = data[i * channels + 3];
  }
  samples.channels = static_cast<std::uint8_t>(left);
  samples.data.resize(pixels * left);
}

}  // namespace

struct Transcoder::Impl {
  explicit Impl(ImageLimits image_limits) : limits(image_limits), decoder(image_limits) {}

  void DecodeRgb(Bytes bytes, const image::StoredInfo& info, Samples& out);

  ImageLimits limits;
  ImageDecoder decoder;
  image::JpegDecoder jpeg;
  image::JpegRewriter rewriter;
  image::JpegEncoder encoder;
  Samples samples_a, samples_b;
  Image image_a, image_b;
};

void Transcoder::Impl::DecodeRgb(Bytes bytes, const image::StoredInfo& info, Samples& out) {
  out.channels = 3;
  out.bit_depth = 8;
  out.maximum = 0;
  out.data.resize(std::size_t{info.width} * info.height * 3);
  auto* pixels = reinterpret_cast<std::uint8_t*>(out.data.data());
  if (info.encoding == Encoding::kWebp) return image::DecodeWebp(bytes, info, pixels);
  jpeg.Decode(bytes, info, {0, info.height}, pixels);
}

Transcoder::Transcoder(ImageLimits limits) : impl_(std::make_unique<Impl>(limits)) {}
Transcoder::Transcoder(Transcoder&&) noexcept = default;
Transcoder& Transcoder::operator=(Transcoder&&) noexcept = default;
Transcoder::~Transcoder() = default;

bool Transcoder::JpegToBaseline(Bytes jpeg, std::vector<std::byte>& out, std::vector<std::byte>& side_data) {
  const image::StoredInfo info = image::CheckedStored(jpeg, impl_->limits);
  if (info.encoding != Encoding::kJpeg) image::ThrowBad("not a JPEG");
  if (!impl_->rewriter.ToBaseline(jpeg, info, out)) return false;
  image::RowPositions(out, side_data);
  return true;
}

bool Transcoder::SamePixels(Bytes a, Bytes b) {
  const image::StoredInfo info_a = image::CheckedStored(a, impl_->limits);
  const image::StoredInfo info_b = image::CheckedStored(b, impl_->limits);
  if (info_a.orientation != info_b.orientation) return false;
  if (info_a.encoding == Encoding::kJpeg && info_b.encoding == Encoding::kJpeg) {
    if (!impl_->rewriter.SameCoefficients(a, b)) return false;
  } else {
    Decode(a, impl_->samples_a);
    Decode(b, impl_->samples_b);
    if (impl_->samples_a != impl_->samples_b) return false;
  }
  impl_->decoder.Decode(a, impl_->image_a);
  impl_->decoder.Decode(b, impl_->image_b);
  return impl_->image_a.width == impl_->image_b.width && impl_->image_a.pixels == impl_->image_b.pixels;
}

void Transcoder::Decode(Bytes bytes, Samples& out) {
  const image::StoredInfo info = image::CheckedStored(bytes, impl_->limits);
  if (info.encoding == Encoding::kPixels) return DecodePixels(bytes, impl_->limits, out);
  out.width = info.width;
  out.height = info.height;
  out.orientation = info.orientation;
  switch (info.encoding) {
    case Encoding::kJpeg:
    case Encoding::kWebp:
      return impl_->DecodeRgb(bytes, info, out);
    case Encoding::kPng:
      image::DecodePng(bytes, info, out);
      if (image::HasPalette(bytes)) MakeGrey(out);
      return;
    case Encoding::kPnm:
      return image::DecodePnm(bytes, info, out);
    default:
      return image::DecodeOther(bytes, info, out);
  }
}

void Transcoder::EncodeJpeg(const Image& image, bool grey, int quality, int chroma, std::vector<std::byte>& out,
                            std::vector<std::byte>& side_data) {
  impl_->encoder.Encode(image, grey, quality, chroma, out);
  image::RowPositions(out, side_data);
}

void Transcoder::Release() {
  impl_->decoder = ImageDecoder(impl_->limits);
  for (Samples* samples : {&impl_->samples_a, &impl_->samples_b}) *samples = Samples{};
  for (Image* picture : {&impl_->image_a, &impl_->image_b}) *picture = Image{};
}

bool HoldsSamples(Bytes bytes, const ImageLimits& limits) {
  switch (image::CheckedStored(bytes, limits).encoding) {
    case Encoding::kJpeg:
    case Encoding::kWebp:
      return false;
    case Encoding::kTiff:
      return image::IsPlainTiff(bytes);
    case Encoding::kBmp:
      return image::IsPlainBmp(bytes);
    default:
      return true;
  }
}

int JpegChroma(Bytes jpeg) { return DetectEncoding(jpeg) == Encoding::kJpeg ? image::ProbeChroma(jpeg) : 0; }

}  // namespace shardpack
