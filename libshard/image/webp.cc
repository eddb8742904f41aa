#include "libshard/image/webp.h"

#include <webp/decode.h>
#include <webp/demux.h>

#include <cstring>
#include <memory>

#include "libshard/image/exif.h"

namespace shardpack::image {
namespace {

constexpr std::size_t kRiffHeaderBytes = 12;
constexpr std::size_t kChunkHeaderBytes = 8;

// The file as its RIFF header bounds it; what follows is ignored. libwebp would accept a file that lost trailing
// chunks.
Bytes RiffBytes(Bytes bytes) {
  if (!Has(bytes, 0, kRiffHeaderBytes)) ThrowTruncated("the file ends within its header");
  std::uint64_t size = std::uint64_t{U32(bytes, 4, false)} + 8;
  if (size < kRiffHeaderBytes) ThrowBad("corrupt WebP: RIFF size");
  if (size > bytes.size()) ThrowTruncated("the WebP ends before its RIFF size");
  return bytes.first(size);
}

Orientation FindOrientation(Bytes riff) {
  std::size_t at = kRiffHeaderBytes;
  while (Has(riff, at, kChunkHeaderBytes)) {
    std::size_t size = U32(riff, at + 4, false);
    if (!Has(riff, at + kChunkHeaderBytes, size)) return 1;
    if (AsText(riff.subspan(at, 4)) == "EXIF") return ExifOrientation(riff.subspan(at + kChunkHeaderBytes, size));
    at += kChunkHeaderBytes + size + size % 2;
  }
  return 1;
}

const std::uint8_t* Data(Bytes bytes) { return reinterpret_cast<const std::uint8_t*>(bytes.data()); }

[[noreturn]] void ThrowStatus(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
      ThrowTruncated("the WebP ends before its last pixel");
    case VP8_STATUS_OUT_OF_MEMORY:
      throw std::bad_alloc();
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      ThrowBad("corrupt WebP: a feature of no known version");
    default:
      ThrowBad("corrupt WebP: damaged bitstream");
  }
}

// Decodes a still picture of width x height to rows `stride` apart.
void DecodeStill(Bytes bytes, int width, int height, std::size_t stride, std::uint8_t* pixels) {
  WebPDecoderConfig config;
  if (!WebPInitDecoderConfig(&config)) ThrowBad("libwebp is of another version than its headers");
  config.output.colorspace = MODE_RGB;  // alpha is neither mixed in nor multiplied
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = pixels;
  config.output.u.RGBA.stride = static_cast<int>(stride);
  config.output.u.RGBA.size = stride * (static_cast<std::size_t>(height) - 1) + static_cast<std::size_t>(width) * 3;
  VP8StatusCode status = WebPDecode(Data(bytes), bytes.size(), &config);
  WebPFreeDecBuffer(&config.output);
  if (status != VP8_STATUS_OK) ThrowStatus(status);
}

struct DemuxDeleter {
  void operator()(WebPDemuxer* demux) const { WebPDemuxDelete(demux); }
};
struct FrameIterator : WebPIterator {
  FrameIterator() : WebPIterator{} {}
  ~FrameIterator() { WebPDemuxReleaseIterator(this); }
};

void DecodeFirstFrame(Bytes riff, const StoredInfo& info, std::uint8_t* pixels) {
  WebPData data{Data(riff), riff.size()};
  std::unique_ptr<WebPDemuxer, DemuxDeleter> demux(WebPDemux(&data));
  FrameIterator frame;
  if (demux == nullptr || !WebPDemuxGetFrame(demux.get(), 1, &frame)) ThrowBad("corrupt WebP: damaged animation");
  if (!frame.complete) ThrowTruncated("the WebP ends before its last pixel");
  auto x = static_cast<std::uint32_t>(frame.x_offset), y = static_cast<std::uint32_t>(frame.y_offset);
  auto width = static_cast<std::uint32_t>(frame.width), height = static_cast<std::uint32_t>(frame.height);
  if (x > info.width || width > info.width - x || y > info.height || height > info.height - y || !width || !height) {
    ThrowBad("corrupt WebP: a frame outside of the canvas");
  }
  std::size_t stride = std::size_t{info.width} * 3;
  std::memset(pixels, 0, stride * info.height);
  Bytes bytes = std::as_bytes(std::span(frame.fragment.bytes, frame.fragment.size));
  DecodeStill(bytes, frame.width, frame.height, stride, pixels + y * stride + x * std::size_t{3});
}

WebPBitstreamFeatures Features(Bytes riff) {
  WebPBitstreamFeatures features;
  VP8StatusCode status = WebPGetFeatures(Data(riff), riff.size(), &features);
  if (status != VP8_STATUS_OK) ThrowStatus(status);
  return features;
}

}  // namespace

StoredInfo ProbeWebp(Bytes bytes) {
  Bytes riff = RiffBytes(bytes);
  WebPBitstreamFeatures features = Features(riff);
  StoredInfo info;
  info.encoding = Encoding::kWebp;
  info.width = static_cast<std::uint32_t>(features.width);
  info.height = static_cast<std::uint32_t>(features.height);
  info.channels = features.has_alpha ? 4 : 3;
  info.bit_depth = 8;
  info.orientation = FindOrientation(riff);
  return info;
}

void DecodeWebp(Bytes bytes, const StoredInfo& info, std::uint8_t* pixels) {
  Bytes riff = RiffBytes(bytes);
  if (Features(riff).has_animation) return DecodeFirstFrame(riff, info, pixels);
  DecodeStill(riff, static_cast<int>(info.width), static_cast<int>(info.height), std::size_t{info.width} * 3, pixels);
}

}  // namespace shardpack::image
