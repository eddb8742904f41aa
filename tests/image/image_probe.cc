// Serves libshard/image to pixels_test.py over standard input and output, so that Pillow can be the judge.
//
// A request is a letter, a 32-bit little-endian count of bytes, and the bytes:
//   D file          decode          -> width, height, pixels
//   S first end file  decode rows   -> the same; the counts are 32 bits each
//   P file          probe           -> encoding, width, height, channels, bit depth, orientation
//   R sw sh w h wx wy ww wh pixels  resize with Resizer, r with ResizeReference -> pixels of the window
//   E w h pixels    encode as PNG, e as PPM -> the file
//   B file          JpegToBaseline  -> 1, bytes of the JPEG, it and the side data; or 0
//   Q n file file   SamePixels (the first has n bytes) -> 1 or 0
//   N file          Transcoder::Decode -> samples: width, height, channels, bit depth, orientation, maximum, data
//   F file          the same, then EncodePixels -> filtered pixels
//   f pixels        DecodePixels    -> samples
//   G file          Transcoder::Decode, then EncodePng -> PNG
//   J w h grey quality chroma pixels  EncodeJpeg -> as B
//   W images quality chroma short w h verify statistics large file  ImageWorker -> encoding, width, height, channels,
//                   bit depth, orientation, bytes of the picture, of the side data, sums (64 bits), both
// An answer is 'k' or 'x' (an Error, whose message follows), a 32-bit count, and the bytes.
#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "libshard/pack/image_work.h"
#include "shardpack/error.h"
#include "shardpack/image.h"
#include "shardpack/resize.h"
#include "shardpack/transcode.h"

namespace {

using shardpack::Bytes;

std::uint32_t TakeU32(Bytes& bytes) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes = bytes.subspan(sizeof value);
  return value;
}

void PutU32(std::string& out, std::uint32_t value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); }

std::string Packed(const shardpack::Image& image) {
  std::string out;
  PutU32(out, image.width);
  PutU32(out, image.height);
  out.append(reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size());
  return out;
}

std::string Probe(Bytes file) {
  shardpack::ImageInfo info = shardpack::ProbeImage(file);
  std::string out;
  for (std::uint32_t v : {std::uint32_t(info.encoding), info.width, info.height, std::uint32_t(info.channels),
                          std::uint32_t(info.bit_depth), std::uint32_t(info.orientation)}) {
    PutU32(out, v);
  }
  return out;
}

std::string Resize(Bytes body, bool reference) {
  static shardpack::Resizer resizer;
  shardpack::PixelView source;
  source.width = TakeU32(body);
  source.height = TakeU32(body);
  source.stride_bytes = std::size_t{source.width} * 3;
  std::uint32_t width = TakeU32(body), height = TakeU32(body);
  shardpack::Resizer::Window window;
  window.x = TakeU32(body);
  window.y = TakeU32(body);
  window.width = TakeU32(body);
  window.height = TakeU32(body);
  source.data = reinterpret_cast<const std::uint8_t*>(body.data());
  std::string out(std::size_t{window.width} * window.height * 3, '\0');
  auto* pixels = reinterpret_cast<std::uint8_t*>(out.data());
  if (reference) {
    shardpack::ResizeReference(source, width, height, window, pixels);
  } else {
    resizer.Resize(source, width, height, window, pixels);
  }
  return out;
}

std::string Encode(Bytes body, bool png) {
  shardpack::Image image;
  image.width = TakeU32(body);
  image.height = TakeU32(body);
  const auto* pixels = reinterpret_cast<const std::uint8_t*>(body.data());
  image.pixels.assign(pixels, pixels + body.size());
  std::vector<std::byte> file = png ? shardpack::EncodePng(image) : shardpack::EncodePpm(image);
  return std::string(shardpack::AsText(file));
}

std::string Text(const std::vector<std::byte>& bytes) { return std::string(shardpack::AsText(bytes)); }

std::string Packed(const shardpack::Samples& samples) {
  std::string out;
  for (std::uint32_t v :
       {samples.width, samples.height, std::uint32_t(samples.channels), std::uint32_t(samples.bit_depth),
        std::uint32_t(samples.orientation), std::uint32_t(samples.maximum)}) {
    PutU32(out, v);
  }
  return out + Text(samples.data);
}

std::string PackedJpeg(const std::vector<std::byte>& jpeg, const std::vector<std::byte>& side_data) {
  std::string out;
  PutU32(out, 1);
  PutU32(out, static_cast<std::uint32_t>(jpeg.size()));
  return out + Text(jpeg) + Text(side_data);
}

std::string Number(std::uint32_t value) {
  std::string out;
  PutU32(out, value);
  return out;
}

shardpack::Transcoder& TheTranscoder() {
  static shardpack::Transcoder transcoder;
  return transcoder;
}

std::string ToBaseline(Bytes jpeg) {
  static std::vector<std::byte> out, side_data;
  return TheTranscoder().JpegToBaseline(jpeg, out, side_data) ? PackedJpeg(out, side_data) : Number(0);
}

std::string WriteJpeg(Bytes body) {
  shardpack::Image image;
  image.width = TakeU32(body);
  image.height = TakeU32(body);
  const bool grey = TakeU32(body) != 0;
  const auto quality = static_cast<int>(TakeU32(body)), chroma = static_cast<int>(TakeU32(body));
  const auto* pixels = reinterpret_cast<const std::uint8_t*>(body.data());
  image.pixels.assign(pixels, pixels + body.size());
  std::vector<std::byte> out, side_data;
  TheTranscoder().EncodeJpeg(image, grey, quality, chroma, out, side_data);
  return PackedJpeg(out, side_data);
}

std::string Samples(char request, Bytes body) {
  static shardpack::Samples samples;
  static std::vector<std::byte> pixels;
  if (request == 'f') {
    shardpack::DecodePixels(body, {}, samples);
    return Packed(samples);
  }
  TheTranscoder().Decode(body, samples);
  if (request == 'N') return Packed(samples);
  if (request == 'G') return Text(shardpack::EncodePng(samples));
  shardpack::EncodePixels(samples, pixels);
  return Text(pixels);
}

std::string Work(Bytes body) {
  std::array<std::uint32_t, 9> numbers;
  for (std::uint32_t& number : numbers) number = TakeU32(body);
  shardpack::ImageWorkOptions options;
  options.images = static_cast<shardpack::ImageMode>(numbers[0]);
  options.quality = static_cast<int>(numbers[1]);
  options.chroma = static_cast<shardpack::Chroma>(numbers[2]);
  if (numbers[3] + numbers[4] != 0) options.resize = shardpack::ResizeTo{numbers[3], numbers[4], numbers[5]};
  options.verify = static_cast<shardpack::VerifyImages>(numbers[6]);
  options.statistics = numbers[7] != 0;
  options.large_picture_bytes = numbers[8];
  std::mutex large;
  shardpack::ImageWorker worker(options, large);
  const shardpack::WorkedImage worked = worker.Work(body);
  std::string out;
  for (std::uint32_t v :
       {std::uint32_t(worked.info.encoding), worked.info.width, worked.info.height, std::uint32_t(worked.info.channels),
        std::uint32_t(worked.info.bit_depth), std::uint32_t(worked.info.orientation),
        std::uint32_t(worked.bytes.size()), std::uint32_t(worked.side_data.size())}) {
    PutU32(out, v);
  }
  const shardpack::ChannelSums& sums = worked.sums;
  for (std::uint64_t v : {sums.pictures, sums.pixels, sums.sum[0], sums.sum[1], sums.sum[2], sums.sum_of_squares[0],
                          sums.sum_of_squares[1], sums.sum_of_squares[2]}) {
    out.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  return out.append(shardpack::AsText(worked.bytes)).append(shardpack::AsText(worked.side_data));
}

std::string Answer(char request, Bytes body) {
  static shardpack::ImageDecoder decoder;
  static shardpack::Image image;
  switch (request) {
    case 'D':
      decoder.Decode(body, image);
      return Packed(image);
    case 'S': {
      std::uint32_t first = TakeU32(body), end = TakeU32(body);
      decoder.DecodeRows(body, first, end, image);
      return Packed(image);
    }
    case 'P':
      return Probe(body);
    case 'R':
      return Resize(body, false);
    case 'r':
      return Resize(body, true);
    case 'E':
      return Encode(body, true);
    case 'e':
      return Encode(body, false);
    case 'B':
      return ToBaseline(body);
    case 'Q': {
      const std::uint32_t size = TakeU32(body);
      return Number(TheTranscoder().SamePixels(body.first(size), body.subspan(size)) ? 1 : 0);
    }
    case 'N':
    case 'F':
    case 'f':
    case 'G':
      return Samples(request, body);
    case 'J':
      return WriteJpeg(body);
    case 'W':
      return Work(body);
    default:
      throw shardpack::Error(shardpack::ErrorCode::kInvalidArgument, "unknown request");
  }
}

}  // namespace

int main() {
  std::vector<std::byte> body;
  for (int request; (request = std::getchar()) != EOF;) {
    std::uint32_t size = 0;
    if (std::fread(&size, sizeof size, 1, stdin) != 1) return 1;
    body.resize(size);
    if (size != 0 && std::fread(body.data(), size, 1, stdin) != 1) return 1;
    char status = 'k';
    std::string answer;
    try {
      answer = Answer(static_cast<char>(request), body);
    } catch (const shardpack::Error& error) {
      status = 'x';
      answer = error.what();
    }
    auto length = static_cast<std::uint32_t>(answer.size());
    std::putchar(status);
    std::fwrite(&length, sizeof length, 1, stdout);
    std::fwrite(answer.data(), 1, answer.size(), stdout);
    std::fflush(stdout);
  }
  return 0;
}
