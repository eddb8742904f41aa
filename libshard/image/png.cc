#include "libshard/image/png.h"

#include <png.h>

#include <array>
#include <cassert>
#include <csetjmp>
#include <cstring>

#include "libshard/image/exif.h"
#include "shardpack/error.h"

namespace shardpack::image {
namespace {

constexpr std::size_t kSignatureBytes = 8;
constexpr std::size_t kChunkOverhead = 12;  // length, type, CRC
constexpr std::uint32_t kMaxChunkBytes = 0x7fffffff;
constexpr std::uint64_t kMaxInflation = 1032;  // deflate's best: 258 bytes from two bits

// CRC-32 of PNG's appendix. Only ever run over an eXIf chunk, so a table would not pay.
std::uint32_t Crc32(Bytes bytes) {
  std::uint32_t crc = 0xffffffff;
  for (std::byte b : bytes) {
    crc ^= static_cast<std::uint32_t>(b);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0u);
  }
  return ~crc;
}

std::uint8_t ChannelsOf(std::uint8_t colour_type) {
  switch (colour_type) {
    case PNG_COLOR_TYPE_GRAY:
      return 1;
    case PNG_COLOR_TYPE_GRAY_ALPHA:
      return 2;
    case PNG_COLOR_TYPE_RGB:
    case PNG_COLOR_TYPE_PALETTE:
      return 3;
    case PNG_COLOR_TYPE_RGB_ALPHA:
      return 4;
    default:
      ThrowBad("corrupt PNG: colour type " + std::to_string(colour_type));
  }
}

void CheckDepth(std::uint8_t colour_type, std::uint8_t depth) {
  bool grey = colour_type == PNG_COLOR_TYPE_GRAY, palette = colour_type == PNG_COLOR_TYPE_PALETTE;
  bool ok = depth == 8 || (depth == 16 && !palette) || ((depth == 1 || depth == 2 || depth == 4) && (grey || palette));
  if (!ok) ThrowBad("corrupt PNG: " + std::to_string(depth) + " bits with colour type " + std::to_string(colour_type));
}

// Orientation of the first sound eXIf chunk. A chunk that leaves the file ends the walk; decoding will report it.
Orientation FindOrientation(Bytes bytes) {
  std::size_t at = kSignatureBytes;
  while (Has(bytes, at, kChunkOverhead)) {
    std::size_t length = U32(bytes, at, true);
    if (length > kMaxChunkBytes || !Has(bytes, at, kChunkOverhead + length)) return 1;
    std::string_view type = AsText(bytes.subspan(at + 4, 4));
    if (type == "eXIf" && Crc32(bytes.subspan(at + 4, length + 4)) == U32(bytes, at + 8 + length, true)) {
      return ExifOrientation(bytes.subspan(at + 8, length));
    }
    if (type == "IEND") return 1;
    at += kChunkOverhead + length;
  }
  return 1;
}

// Everything libpng's callbacks need; no destructors, for libpng fails by longjmp.
struct Reader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  const std::uint8_t* next = nullptr;
  std::size_t left = 0;
  bool truncated = false;
  std::array<char, 200> message = {};
  const StoredInfo* expected = nullptr;
  std::uint8_t* pixels = nullptr;
};

[[noreturn]] void OnError(png_structp png, png_const_charp text) {
  auto* reader = static_cast<Reader*>(png_get_error_ptr(png));
  std::strncpy(reader->message.data(), text, reader->message.size() - 1);
  png_longjmp(png, 1);
}

// libpng warns, where it need not stop, of pixel data that fails its own checksum after the last row. Too much of it is
// harmless.
void OnWarning(png_structp png, png_const_charp text) {
  if (std::strncmp(text, "IDAT: ", 6) != 0) return;
  if (std::strstr(text, "Extra") != nullptr || std::strstr(text, "Too much") != nullptr) return;
  OnError(png, text);
}

void OnRead(png_structp png, png_bytep out, std::size_t count) {
  auto* reader = static_cast<Reader*>(png_get_io_ptr(png));
  if (count > reader->left) {
    reader->truncated = true;
    OnError(png, "end of file");
  }
  std::memcpy(out, reader->next, count);
  reader->next += count;
  reader->left -= count;
}

// Chunks that say nothing about 8-bit colours are skipped unread, which also leaves compressed text and profiles no way
// to ask for memory. tRNS is one: alpha is dropped, and colours under it stay.
void SkipIrrelevantChunks(png_structp png) {
  static constexpr png_byte kNames[] =
      "bKGD\0cHRM\0eXIf\0gAMA\0hIST\0iCCP\0iTXt\0oFFs\0pCAL\0pHYs\0sBIT\0sCAL\0sPLT\0sRGB\0tEXt\0tIME\0tRNS\0zTXt";
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, 0);
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, kNames, sizeof kNames / 5);
}

void AskForRgb8(png_structp png) {
  png_set_strip_16(png);  // the high byte
  png_set_palette_to_rgb(png);
  png_set_expand_gray_1_2_4_to_8(png);
  png_set_gray_to_rgb(png);
  png_set_strip_alpha(png);
}

bool Run(Reader& reader) {
  if (setjmp(png_jmpbuf(reader.png))) return false;
  png_structp png = reader.png;
  png_set_read_fn(png, &reader, OnRead);
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // the pixel limit was checked before
  SkipIrrelevantChunks(png);
  png_read_info(png, reader.info);
  AskForRgb8(png);
  int passes = png_set_interlace_handling(png);
  png_read_update_info(png, reader.info);
  std::size_t stride = std::size_t{reader.expected->width} * 3;
  if (png_get_image_width(png, reader.info) != reader.expected->width ||
      png_get_image_height(png, reader.info) != reader.expected->height ||
      png_get_rowbytes(png, reader.info) != stride) {
    OnError(png, "its headers contradict each other");
  }
  for (int pass = 0; pass < passes; ++pass) {
    for (std::size_t y = 0; y < reader.expected->height; ++y) png_read_row(png, reader.pixels + y * stride, nullptr);
  }
  png_read_end(png, nullptr);
  return true;
}

}  // namespace

StoredInfo ProbePng(Bytes bytes) {
  if (!Has(bytes, kSignatureBytes, kChunkOverhead + 13)) ThrowTruncated("the file ends within its header");
  if (U32(bytes, kSignatureBytes, true) != 13 || AsText(bytes.subspan(12, 4)) != "IHDR") {
    ThrowBad("corrupt PNG: no header chunk");
  }
  if (Crc32(bytes.subspan(12, 17)) != U32(bytes, 29, true)) ThrowBad("corrupt PNG: IHDR: CRC error");
  StoredInfo info;
  info.encoding = Encoding::kPng;
  info.width = U32(bytes, 16, true);
  info.height = U32(bytes, 20, true);
  info.bit_depth = U8(bytes, 24);
  info.channels = ChannelsOf(U8(bytes, 25));
  CheckDepth(U8(bytes, 25), info.bit_depth);
  info.fewest_bytes = std::uint64_t{info.width} * info.height * info.bit_depth / 8 / kMaxInflation;
  info.orientation = FindOrientation(bytes);
  return info;
}

void DecodePng(Bytes bytes, const StoredInfo& info, std::uint8_t* pixels) {
  Reader reader;
  reader.next = reinterpret_cast<const std::uint8_t*>(bytes.data());
  reader.left = bytes.size();
  reader.expected = &info;
  reader.pixels = pixels;
  reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, OnError, OnWarning);
  if (reader.png != nullptr) reader.info = png_create_info_struct(reader.png);
  bool done = reader.info != nullptr && Run(reader);
  png_destroy_read_struct(&reader.png, &reader.info, nullptr);
  if (done) return;
  if (reader.truncated) ThrowTruncated("the PNG ends before its end chunk");
  ThrowBad(std::string("corrupt PNG: ") + reader.message.data());
}

}  // namespace shardpack::image
