// Serves libshard/image to pixels_test.py over standard input and output, so that Pillow can be the judge.
//
// A request is a letter, a 32-bit little-endian count of bytes, and the bytes:
//   D file          decode          -> width, height, pixels
//   S first end file  decode rows   -> the same; the counts are 32 bits each
//   P file          probe           -> encoding, width, height, channels, bit depth, orientation
//   R sw sh w h wx wy ww wh pixels  resize with Resizer, r with ResizeReference -> pixels of the window
//   E w h pixels    encode as PNG, e as PPM -> the file
// An answer is 'k' or 'x' (an Error, whose message follows), a 32-bit count, and the bytes.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "shardpack/error.h"
#include "shardpack/image.h"
#include "shardpack/resize.h"

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
