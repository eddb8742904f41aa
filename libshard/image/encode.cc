#include <png.h>

#include <algorithm>
#include <cassert>
#include <csetjmp>
#include <cstring>

#include "libshard/image/codec.h"
#include "libshard/image/exif.h"
#include "shardpack/error.h"
#include "shardpack/image.h"
#include "shardpack/transcode.h"

namespace shardpack {
namespace {

void Append(std::vector<std::byte>& out, const void* data, std::size_t size) {
  const auto* bytes = static_cast<const std::byte*>(data);
  out.insert(out.end(), bytes, bytes + size);
}

// std::vector may throw, which must not cross libpng's frames; nor may a jump leave a handler.
void OnWrite(png_structp png, png_bytep data, png_size_t size) {
  bool done = true;
  try {
    Append(*static_cast<std::vector<std::byte>*>(png_get_io_ptr(png)), data, size);
  } catch (const std::exception&) {
    done = false;
  }
  if (!done) png_longjmp(png, 1);
}
void OnFlush(png_structp) {}
[[noreturn]] void OnError(png_structp png, png_const_charp) { png_longjmp(png, 1); }
void OnWarning(png_structp, png_const_charp) {}

// What is written: rows `stride` bytes apart.
struct PngPicture {
  std::uint32_t width, height;
  int channels, bit_depth;
  Orientation orientation;
  const std::uint8_t* rows;
  std::size_t stride;
};

int ColourType(int channels) {
  static constexpr int kTypes[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                   PNG_COLOR_TYPE_RGB_ALPHA};
  return kTypes[channels - 1];
}

bool Write(png_structp png, png_infop info, const PngPicture& picture, std::vector<std::byte>& out) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_write_fn(png, &out, OnWrite, OnFlush);
  // Fixed, so that the bytes depend on the picture and on libpng's and zlib's versions alone.
  png_set_compression_level(png, 6);
  png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_ALL_FILTERS);
  png_set_IHDR(png, info, picture.width, picture.height, picture.bit_depth, ColourType(picture.channels),
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (picture.orientation != 1) {
    png_byte exif[image::kExifBytes];
    image::PutExif(picture.orientation, exif);
    png_set_eXIf_1(png, info, sizeof exif, exif);  // copies it
  }
  png_write_info(png, info);
  if (picture.bit_depth == 16) png_set_swap(png);
  for (std::size_t y = 0; y < picture.height; ++y) png_write_row(png, picture.rows + y * picture.stride);
  png_write_end(png, info);
  return true;
}

std::vector<std::byte> Encode(const PngPicture& picture) {
  std::vector<std::byte> out;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, OnError, OnWarning);
  png_infop info = png != nullptr ? png_create_info_struct(png) : nullptr;
  bool done = info != nullptr && Write(png, info, picture, out);
  png_destroy_write_struct(&png, &info);
  if (!done) throw Error(ErrorCode::kUnsupported, "the picture cannot be written as PNG");
  return out;
}

// 16-bit samples up to `maximum`, stretched to PNG's 65535.
std::vector<std::byte> Stretched(const std::vector<std::byte>& data, std::uint32_t maximum) {
  std::vector<std::byte> out(data.size());
  for (std::size_t i = 0; i + 1 < data.size(); i += 2) {
    const std::uint32_t value = std::min(image::U16(data, i, false), maximum);
    const auto stretched = static_cast<std::uint32_t>((std::uint64_t{value} * 65535 + maximum / 2) / maximum);
    out[i] = static_cast<std::byte>(stretched);
    out[i + 1] = static_cast<std::byte>(stretched >> 8);
  }
  return out;
}

}  // namespace

std::vector<std::byte> EncodePng(const Image& image) {
  assert(image.pixels.size() == std::size_t{image.width} * image.height * 3);
  return Encode({image.width, image.height, 3, 8, 1, image.pixels.data(), std::size_t{image.width} * 3});
}

std::vector<std::byte> EncodePng(const Samples& samples) {
  const std::size_t stride = std::size_t{samples.width} * samples.channels * (samples.bit_depth / 8u);
  assert(samples.data.size() == stride * samples.height);
  std::vector<std::byte> stretched;
  if (samples.maximum != 0 && samples.maximum != 65535) stretched = Stretched(samples.data, samples.maximum);
  const std::byte* rows = stretched.empty() ? samples.data.data() : stretched.data();
  return Encode({samples.width, samples.height, samples.channels, samples.bit_depth, samples.orientation,
                 reinterpret_cast<const std::uint8_t*>(rows), stride});
}

std::vector<std::byte> EncodePpm(const Image& image) {
  assert(image.pixels.size() == std::size_t{image.width} * image.height * 3);
  std::string header = "P6\n" + std::to_string(image.width) + " " + std::to_string(image.height) + "\n255\n";
  std::vector<std::byte> out;
  out.reserve(header.size() + image.pixels.size());
  Append(out, header.data(), header.size());
  Append(out, image.pixels.data(), image.pixels.size());
  return out;
}

}  // namespace shardpack
