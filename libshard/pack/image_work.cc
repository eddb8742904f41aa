#include "libshard/pack/image_work.h"

#include "shardpack/error.h"

namespace shardpack {
namespace {

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

}  // namespace

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
  Impl(const ImageWorkOptions& work, std::mutex& large) : options(work), large_picture(large), decoder(work.limits) {}

  WorkedImage Keep(Bytes input);
  bool IsLarge(const ImageInfo& info) const {
    return std::uint64_t{info.width} * info.height * 3 > options.large_picture_bytes;
  }

  ImageWorkOptions options;
  std::mutex& large_picture;
  ImageDecoder decoder;
  Image picture;
};

WorkedImage ImageWorker::Impl::Keep(Bytes input) {
  WorkedImage worked;
  worked.info = ProbeImage(input, options.limits);
  worked.bytes = input;
  if (options.verify == VerifyImages::kHeader) CheckHasEnd(worked.info.encoding, input);
  if (options.verify != VerifyImages::kDecode && !options.statistics) return worked;
  std::unique_lock<std::mutex> alone(large_picture, std::defer_lock);
  if (IsLarge(worked.info)) alone.lock();
  decoder.Decode(input, picture);
  if (options.statistics) AddSums(picture, worked.sums);
  if (alone.owns_lock()) picture = Image{};
  return worked;
}

ImageWorker::ImageWorker(const ImageWorkOptions& options, std::mutex& large_picture)
    : impl_(std::make_unique<Impl>(options, large_picture)) {}
ImageWorker::~ImageWorker() = default;

WorkedImage ImageWorker::Work(Bytes input) { return impl_->Keep(input); }

}  // namespace shardpack
