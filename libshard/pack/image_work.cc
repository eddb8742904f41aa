#include "libshard/pack/image_work.h"

#include <algorithm>
#include <limits>

#include "shardpack/error.h"
#include "shardpack/resize.h"
#include "shardpack/transcode.h"

namespace shardpack {
namespace {

constexpr std::uint64_t kLargestRecord = std::numeric_limits<std::uint32_t>::max();  // what a row of the index can say
constexpr std::uint64_t kPixelsHeaderBytes = 16;

// The most that work takes for each pixel. Decoding: RGB. Re-encoding: RGB as stored, upright and resized. JPEG without
// loss: two pictures' coefficients. Pixels without loss: samples and two filtered forms of them, or two decoded
// pictures to compare.
constexpr std::uint64_t kDecodeBytes = 3, kReencodeBytes = 12, kRewriteBytes = 12, kCompareBytes = 9;

[[noreturn]] void ThrowBad(const std::string& reason) { throw Error(ErrorCode::kBadInput, reason); }

void AddSums(const Image& picture, ChannelSums& sums) {
  sums.pictures = 1;
  sums.pixels = std::uint64_t{picture.width} * picture.height;
  for (std::size_t i = 0; i + 2 < picture.pixels.size(); i += 3) {
    for (std::size_t c = 0; c < 3; ++c) {
      const std::uint64_t value = picture.pixels[i + c];
      sums.sum[c] += value;
      sums.sum_of_squares[c] += value * value;
    }
  }
}

bool IsAllGrey(const Image& picture) {
  const std::vector<std::uint8_t>& pixels = picture.pixels;
  for (std::size_t i = 0; i + 2 < pixels.size(); i += 3) {
    if (pixels[i] != pixels[i + 1] || pixels[i] != pixels[i + 2]) return false;
  }
  return true;
}

// Whether a picture that is re-encoded becomes grey: it says that it is, or its format has no good way to say so.
bool IsGrey(const ImageInfo& info, const Image& picture) {
  if (info.channels <= 2) return true;
  const bool may_be =
      info.encoding == Encoding::kPng || info.encoding == Encoding::kBmp || info.encoding == Encoding::kGif;
  return may_be && IsAllGrey(picture);
}

int ChromaOf(Chroma wanted, Bytes input) {
  switch (wanted) {
    case Chroma::k444:
      return 444;
    case Chroma::k422:
      return 422;
    case Chroma::k420:
      return 420;
    case Chroma::kKeep:
      break;
  }
  const int own = JpegChroma(input);
  return own != 0 ? own : 420;
}

}  // namespace

ImageWorkOptions WorkOptionsOf(const PackOptions& options) {
  ImageWorkOptions work;
  work.images = options.images;
  work.quality = options.quality;
  work.chroma = options.chroma;
  work.resize = options.resize;
  work.verify = options.verify_images;
  work.limits = options.limits;
  return work;
}

PictureSize ShrunkSize(PictureSize picture, const ResizeTo& resize) {
  if (resize.short_side == 0) {
    const bool larger = picture.width >= resize.width && picture.height >= resize.height;
    return larger ? PictureSize{resize.width, resize.height} : picture;
  }
  const std::uint32_t short_side = std::min(picture.width, picture.height);
  if (short_side <= resize.short_side) return picture;
  const auto scaled = [&](std::uint32_t side) {
    return static_cast<std::uint32_t>(std::uint64_t{side} * resize.short_side / short_side);
  };
  return {scaled(picture.width), scaled(picture.height)};
}

void CheckHasEnd(Encoding encoding, Bytes bytes) {
  const std::string_view text = AsText(bytes);
  if (encoding == Encoding::kJpeg) {
    // Bytes after the marker are allowed; those of a thumbnail in front of the picture may hide a cut.
    if (!text.ends_with("\xFF\xD9") && text.rfind("\xFF\xD9") == std::string_view::npos)
      ThrowBad("truncated: a JPEG without its end marker");
  } else if (encoding == Encoding::kPng) {
    static constexpr std::string_view kEnd("\0\0\0\0IEND\xAE\x42\x60\x82", 12);
    if (!text.ends_with(kEnd) && text.rfind(kEnd) == std::string_view::npos)
      ThrowBad("truncated: a PNG without its end chunk");
  }
}

struct ImageWorker::Impl {
  Impl(const ImageWorkOptions& work, std::mutex& large)
      : options(work), large_picture(large), decoder(work.limits), transcoder(work.limits) {}

  WorkedImage Work(Bytes input, const ImageInfo& info);
  WorkedImage Keep(Bytes input, const ImageInfo& info);
  WorkedImage WithoutLoss(Bytes input, const ImageInfo& info);
  WorkedImage Reencode(Bytes input, const ImageInfo& info);
  bool MakeLossless(Bytes input, const ImageInfo& info);
  void Shrink();
  void MakePixels(bool grey);
  WorkedImage Made(bool sums);
  std::uint64_t MemoryFor(const ImageInfo& info) const;
  void Release();

  ImageWorkOptions options;
  std::mutex& large_picture;
  ImageDecoder decoder;
  Transcoder transcoder;
  Resizer resizer;
  Image picture, shrunk;
  Samples samples;
  std::vector<std::byte> made, side_data;  // handed out until the next call
};

std::uint64_t ImageWorker::Impl::MemoryFor(const ImageInfo& info) const {
  const std::uint64_t pixels = std::uint64_t{info.width} * info.height;
  if (options.images == ImageMode::kKeep) {
    return options.verify == VerifyImages::kDecode || options.statistics ? pixels * kDecodeBytes : 0;
  }
  if (options.images != ImageMode::kLossless) return pixels * kReencodeBytes;
  if (info.encoding == Encoding::kJpeg) return pixels * kRewriteBytes;
  const std::uint64_t sample_bytes = info.bit_depth > 8 ? 2 : 1;
  return pixels * (3 * sample_bytes * std::max<std::uint64_t>(info.channels, 3) + kCompareBytes);
}

// What a large picture left behind must not count against those that the others work on.
void ImageWorker::Impl::Release() {
  decoder = ImageDecoder(options.limits);
  transcoder.Release();
  picture = shrunk = Image{};
  samples = Samples{};
}

WorkedImage ImageWorker::Impl::Keep(Bytes input, const ImageInfo& info) {
  WorkedImage worked;
  worked.info = info;
  worked.bytes = input;
  if (options.verify == VerifyImages::kHeader) CheckHasEnd(info.encoding, input);
  if (options.verify != VerifyImages::kDecode && !options.statistics) return worked;
  decoder.Decode(input, picture);
  if (options.statistics) AddSums(picture, worked.sums);
  return worked;
}

// Of what lies in `made`.
WorkedImage ImageWorker::Impl::Made(bool sums) {
  WorkedImage worked;
  worked.info = ProbeImage(made, options.limits);
  worked.bytes = made;
  worked.side_data = side_data;
  if (!sums) return worked;
  decoder.Decode(made, picture);
  AddSums(picture, worked.sums);
  return worked;
}

// False where the input itself is what is stored.
bool ImageWorker::Impl::MakeLossless(Bytes input, const ImageInfo& info) {
  if (info.encoding == Encoding::kPixels) return false;
  if (info.encoding == Encoding::kJpeg) return transcoder.JpegToBaseline(input, made, side_data);
  if (!HoldsSamples(input, options.limits)) return false;
  transcoder.Decode(input, samples);
  if (samples.data.size() + samples.height + kPixelsHeaderBytes > kLargestRecord) return false;
  EncodePixels(samples, made);
  return true;
}

WorkedImage ImageWorker::Impl::WithoutLoss(Bytes input, const ImageInfo& info) {
  if (!MakeLossless(input, info)) return Keep(input, info);
  if (options.verify == VerifyImages::kHeader) CheckHasEnd(info.encoding, input);
  if (options.verify == VerifyImages::kDecode && !transcoder.SamePixels(input, made)) {
    ThrowBad("cannot be stored without loss: its lossless form decodes to other pixels (please report it)");
  }
  return Made(options.statistics);
}

void ImageWorker::Impl::Shrink() {
  if (!options.resize) return;
  const PictureSize size = ShrunkSize({picture.width, picture.height}, *options.resize);
  if (size == PictureSize{picture.width, picture.height}) return;
  shrunk.width = size.width;
  shrunk.height = size.height;
  shrunk.pixels.resize(std::size_t{size.width} * size.height * 3);
  const PixelView view{picture.pixels.data(), picture.width, picture.height, std::size_t{picture.width} * 3};
  resizer.Resize(view, size.width, size.height, {0, 0, size.width, size.height}, shrunk.pixels.data());
  std::swap(picture, shrunk);
}

void ImageWorker::Impl::MakePixels(bool grey) {
  samples.width = picture.width;
  samples.height = picture.height;
  samples.channels = grey ? 1 : 3;
  samples.bit_depth = 8;
  samples.orientation = 1;
  samples.maximum = 0;
  const std::size_t pixels = picture.pixels.size() / 3, step = grey ? 3 : 1;
  if (pixels * samples.channels + samples.height + kPixelsHeaderBytes > kLargestRecord) {
    ThrowBad("its pixels take 4 GiB or more");
  }
  samples.data.resize(pixels * samples.channels);
  for (std::size_t i = 0; i < samples.data.size(); ++i) {
    samples.data[i] = static_cast<std::byte>(picture.pixels[i * step]);
  }
  EncodePixels(samples, made);
}

WorkedImage ImageWorker::Impl::Reencode(Bytes input, const ImageInfo& info) {
  decoder.Decode(input, picture);
  const bool grey = IsGrey(info, picture);
  Shrink();
  if (options.images == ImageMode::kPixels) {
    MakePixels(grey);
  } else {
    transcoder.EncodeJpeg(picture, grey, options.quality, ChromaOf(options.chroma, input), made, side_data);
  }
  return Made(options.statistics);
}

WorkedImage ImageWorker::Impl::Work(Bytes input, const ImageInfo& info) {
  switch (options.images) {
    case ImageMode::kLossless:
      return WithoutLoss(input, info);
    case ImageMode::kJpeg:
    case ImageMode::kPixels:
      return Reencode(input, info);
    case ImageMode::kKeep:
      break;
  }
  return Keep(input, info);
}

ImageWorker::ImageWorker(const ImageWorkOptions& options, std::mutex& large_picture)
    : impl_(std::make_unique<Impl>(options, large_picture)) {}
ImageWorker::~ImageWorker() = default;

WorkedImage ImageWorker::Work(Bytes input) {
  Impl& impl = *impl_;
  if (impl.made.capacity() > impl.options.large_picture_bytes) impl.made = {};
  impl.side_data.clear();
  const ImageInfo info = ProbeImage(input, impl.options.limits);
  if (impl.MemoryFor(info) <= impl.options.large_picture_bytes) return impl.Work(input, info);
  const std::lock_guard<std::mutex> alone(impl.large_picture);
  struct Releaser {
    Impl& impl;
    ~Releaser() { impl.Release(); }
  } releaser{impl};
  return impl.Work(input, info);
}

}  // namespace shardpack
