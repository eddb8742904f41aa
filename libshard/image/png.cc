#include "libshard/image/png.h"

#include <png.h>

#include <array>
#include <cassert>
#include <csetjmp>
#include <cstring>
#include <new>

#include "libshard/image/exif.h"
#include "shardpack/error.h"

namespace shardpack::image {
namespace {

constexpr std::size_t kSignatureBytes = 8, kColourTypeOffset = 25;
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

// Everything libpng's callbacks need. libpng fails by longjmp: what calls setjmp() holds nothing with a destructor.
struct Reader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  const std::uint8_t* next = nullptr;
  std::size_t left = 0;
  bool truncated = false;
  std::array<char, 200> message = {};
  const StoredInfo* expected = nullptr;
  bool as_stored = false;  // all samples instead of 8-bit RGB
  std::uint8_t* pixels = nullptr;
  int passes = 1;
  std::size_t stride = 0;

  Reader(Bytes bytes, const StoredInfo& info);
  ~Reader() { png_destroy_read_struct(&png, &this->info, nullptr); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  [[noreturn]] void Throw() const;
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

// Chunks that say nothing about colours are skipped unread, which also leaves compressed text and profiles no way to
// ask for memory. tRNS, the last one, is skipped where alpha is dropped: colours under it stay.
void SkipIrrelevantChunks(png_structp png, bool with_transparency) {
  static constexpr png_byte kNames[] =
      "bKGD\0cHRM\0eXIf\0gAMA\0hIST\0iCCP\0iTXt\0oFFs\0pCAL\0pHYs\0sBIT\0sCAL\0sPLT\0sRGB\0tEXt\0tIME\0zTXt\0tRNS";
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, 0);
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, kNames, sizeof kNames / 5 - (with_transparency ? 1 : 0));
}

void AskForRgb8(png_structp png) {
  png_set_strip_16(png);  // the high byte
  png_set_palette_to_rgb(png);
  png_set_expand_gray_1_2_4_to_8(png);
  png_set_gray_to_rgb(png);
  png_set_strip_alpha(png);
}

// Palettes and tRNS expanded, fewer than 8 bits scaled to 8, 16 bits little endian.
void AskForSamples(png_structp png) {
  png_set_expand(png);
  png_set_swap(png);
}

bool Begin(Reader& reader) {
  if (setjmp(png_jmpbuf(reader.png))) return false;
  png_structp png = reader.png;
  png_set_read_fn(png, &reader, OnRead);
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // the pixel limit was checked before
  SkipIrrelevantChunks(png, reader.as_stored);
  png_read_info(png, reader.info);
  if (reader.as_stored) {
    AskForSamples(png);
  } else {
    AskForRgb8(png);
  }
  reader.passes = png_set_interlace_handling(png);
  png_read_update_info(png, reader.info);
  reader.stride = png_get_rowbytes(png, reader.info);
  if (png_get_image_width(png, reader.info) != reader.expected->width ||
      png_get_image_height(png, reader.info) != reader.expected->height) {
    OnError(png, "its headers contradict each other");
  }
  return true;
}

bool ReadRows(Reader& reader) {
  if (setjmp(png_jmpbuf(reader.png))) return false;
  for (int pass = 0; pass < reader.passes; ++pass) {
    for (std::size_t y = 0; y < reader.expected->height; ++y) {
      png_read_row(reader.png, reader.pixels + y * reader.stride, nullptr);
    }
  }
  png_read_end(reader.png, nullptr);
  return true;
}

Reader::Reader(Bytes bytes, const StoredInfo& stored)
    : next(reinterpret_cast<const std::uint8_t*>(bytes.data())), left(bytes.size()), expected(&stored) {
  png = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, OnError, OnWarning);
  if (png != nullptr) info = png_create_info_struct(png);
  if (info == nullptr) {
    png_destroy_read_struct(&png, nullptr, nullptr);
    throw std::bad_alloc();
  }
}

void Reader::Throw() const {
  if (truncated) ThrowTruncated("the PNG ends before its end chunk");
  ThrowBad(std::string("corrupt PNG: ") + message.data());
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
  Reader reader(bytes, info);
  reader.pixels = pixels;
  if (!Begin(reader)) reader.Throw();
  if (reader.stride != std::size_t{info.width} * 3) ThrowBad("corrupt PNG: its headers contradict each other");
  if (!ReadRows(reader)) reader.Throw();
}

void DecodePng(Bytes bytes, const StoredInfo& info, Samples& out) {
  Reader reader(bytes, info);
  reader.as_stored = true;
  if (!Begin(reader)) reader.Throw();
  out.channels = png_get_channels(reader.png, reader.info);
  out.bit_depth = png_get_bit_depth(reader.png, reader.info);
  out.maximum = 0;
  out.data.resize(reader.stride * info.height);
  reader.pixels = reinterpret_cast<std::uint8_t*>(out.data.data());
  if (reader.stride != std::size_t{info.width} * out.channels * out.bit_depth / 8) {
    ThrowBad("corrupt PNG: its headers contradict each other");
  }
  if (!ReadRows(reader)) reader.Throw();
}

bool HasPalette(Bytes png) { return U8(png, kColourTypeOffset) == PNG_COLOR_TYPE_PALETTE; }

}  // namespace shardpack::image
