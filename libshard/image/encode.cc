#include <png.h>

#include <cassert>
#include <csetjmp>
#include <cstring>

#include "shardpack/error.h"
#include "shardpack/image.h"

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

bool Write(png_structp png, png_infop info, const Image& image, std::vector<std::byte>& out) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_write_fn(png, &out, OnWrite, OnFlush);
  // Fixed, so that the bytes depend on the picture and on libpng's and zlib's versions alone.
  png_set_compression_level(png, 6);
  png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_ALL_FILTERS);
  png_set_IHDR(png, info, image.width, image.height, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  for (std::size_t y = 0; y < image.height; ++y) png_write_row(png, image.pixels.data() + y * image.width * 3);
  png_write_end(png, info);
  return true;
}

}  // namespace

std::vector<std::byte> EncodePng(const Image& image) {
  assert(image.pixels.size() == std::size_t{image.width} * image.height * 3);
  std::vector<std::byte> out;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, OnError, OnWarning);
  png_infop info = png != nullptr ? png_create_info_struct(png) : nullptr;
  bool done = info != nullptr && Write(png, info, image, out);
  png_destroy_write_struct(&png, &info);
  if (!done) throw Error(ErrorCode::kUnsupported, "the picture cannot be written as PNG");
  return out;
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
