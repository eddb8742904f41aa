#include <algorithm>
#include <bit>

#include "libshard/image/other_formats.h"

namespace shardpack::image {
namespace {

constexpr std::size_t kFileHeaderBytes = 14;
constexpr std::uint32_t kCoreHeaderBytes = 12;
constexpr std::uint32_t kRgb = 0, kRle8 = 1, kRle4 = 2, kBitfields = 3, kAlphaBitfields = 6;

constexpr std::size_t kMasksOffset = 54;  // of three channel masks, in the header or behind it

struct Header {
  std::uint32_t pixels_offset, width, height, bits, compression;
  bool from_top;

  std::uint64_t RowBytes() const { return (std::uint64_t{width} * bits + 31) / 32 * 4; }
};

Header ReadHeader(Bytes bytes) {
  if (!Has(bytes, 0, kFileHeaderBytes + kCoreHeaderBytes)) ThrowTruncated("the file ends within its header");
  std::uint32_t header_bytes = U32(bytes, kFileHeaderBytes, false);
  if (!Has(bytes, kFileHeaderBytes, header_bytes)) ThrowTruncated("the file ends within its header");
  Header header;
  header.pixels_offset = U32(bytes, 10, false);
  if (header_bytes == kCoreHeaderBytes) {
    header.width = U16(bytes, 18, false);
    header.height = U16(bytes, 20, false);
    header.bits = U16(bytes, 24, false);
    header.compression = kRgb;
    header.from_top = false;
    return header;
  }
  if (header_bytes < 40) ThrowBad("BMP headers of " + std::to_string(header_bytes) + " bytes are not supported");
  header.width = U32(bytes, 18, false);
  header.height = U32(bytes, 22, false);
  header.from_top = header.height > INT32_MAX;  // a negative number
  if (header.from_top) header.height = 0u - header.height;
  if (header.width > INT32_MAX || header.height > INT32_MAX) ThrowBad("corrupt BMP: size out of range");
  header.bits = U16(bytes, 28, false);
  header.compression = U32(bytes, 30, false);
  return header;
}

void CheckRows(Bytes bytes, const Header& header) {
  std::uint64_t row_bytes = header.RowBytes();
  std::uint64_t available = bytes.size() > header.pixels_offset ? bytes.size() - header.pixels_offset : 0;
  if (row_bytes != 0 && header.height > available / row_bytes) ThrowTruncated("the BMP ends before its last pixel");
}

// Walks over run-length codes up to the end of the bitmap.
void CheckRuns(Bytes bytes, const Header& header) {
  std::size_t at = header.pixels_offset;
  for (;;) {
    if (!Has(bytes, at, 2)) ThrowTruncated("the BMP ends before its end-of-bitmap code");
    std::uint32_t count = U8(bytes, at), code = U8(bytes, at + 1);
    at += 2;
    if (count != 0) continue;
    if (code == 1) return;
    if (code == 2) at += 2;
    if (code > 2) at += ((header.compression == kRle4 ? (code + 1) / 2 : code) + 1) / 2 * 2;
  }
}

// A channel of a packed pixel, scaled to 8 bits.
class Channel {
 public:
  explicit Channel(std::uint32_t mask) : shift_(std::countr_zero(mask)), maximum_(mask == 0 ? 0 : mask >> shift_) {}
  std::uint8_t Of(std::uint32_t pixel) const {
    return maximum_ == 0 ? 0 : static_cast<std::uint8_t>((pixel >> shift_ & maximum_) * 255 / maximum_);
  }

 private:
  int shift_;
  std::uint32_t maximum_;
};

}  // namespace

bool IsPackedBmp(Bytes bytes) {
  Header header = ReadHeader(bytes);
  return header.bits == 16 && (header.compression == kRgb || header.compression == kBitfields);
}

void DecodePackedBmp(Bytes bytes, const StoredInfo& info, std::uint8_t* pixels) {
  Header header = ReadHeader(bytes);
  bool masked = header.compression == kBitfields;
  if (masked && !Has(bytes, kMasksOffset, 12)) ThrowTruncated("the file ends within its header");
  auto mask = [&](std::size_t i, std::uint32_t usual) {
    return masked ? U32(bytes, kMasksOffset + 4 * i, false) & 0xffff : usual;
  };
  Channel red(mask(0, 0x7C00)), green(mask(1, 0x03E0)), blue(mask(2, 0x001F));
  for (std::uint32_t y = 0; y < info.height; ++y) {
    std::size_t at = header.pixels_offset + header.RowBytes() * (header.from_top ? y : info.height - 1 - y);
    for (std::uint32_t x = 0; x < info.width; ++x, at += 2, pixels += 3) {
      std::uint32_t pixel = U16(bytes, at, false);
      pixels[0] = red.Of(pixel);
      pixels[1] = green.Of(pixel);
      pixels[2] = blue.Of(pixel);
    }
  }
}

StoredInfo ProbeBmp(Bytes bytes) {
  Header header = ReadHeader(bytes);
  StoredInfo info;
  info.encoding = Encoding::kBmp;
  info.width = header.width;
  info.height = header.height;
  info.channels = header.bits == 32 ? 4 : 3;
  info.bit_depth = 8;
  switch (header.compression) {
    case kRgb:
    case kBitfields:
    case kAlphaBitfields:
      CheckRows(bytes, header);
      break;
    case kRle8:
    case kRle4:
      CheckRuns(bytes, header);
      break;
    default:
      ThrowBad("BMP compression " + std::to_string(header.compression) + " is not supported");
  }
  return info;
}

bool IsPlainBmp(Bytes bytes) {
  const Header header = ReadHeader(bytes);
  if (header.bits != 32 || header.compression == kRgb) return true;
  const auto mask = [bytes](std::size_t i) { return U32(bytes, kMasksOffset + 4 * i, false); };
  return Has(bytes, kMasksOffset, 12) && mask(0) == 0xFF0000 && mask(1) == 0xFF00 && mask(2) == 0xFF;
}

std::vector<std::uint8_t> BmpAlpha(Bytes bytes) {
  const Header header = ReadHeader(bytes);
  std::vector<std::uint8_t> alpha;
  if (header.bits != 32) return alpha;
  alpha.reserve(std::size_t{header.width} * header.height);
  for (std::uint32_t y = 0; y < header.height; ++y) {
    const std::size_t row = header.pixels_offset + header.RowBytes() * (header.from_top ? y : header.height - 1 - y);
    for (std::uint32_t x = 0; x < header.width; ++x) alpha.push_back(U8(bytes, row + 4 * std::size_t{x} + 3));
  }
  const std::uint8_t first = alpha[0];
  const bool constant = std::all_of(alpha.begin(), alpha.end(), [first](std::uint8_t value) { return value == first; });
  if (constant && (first == 0 || first == 255)) alpha.clear();
  return alpha;
}

}  // namespace shardpack::image
