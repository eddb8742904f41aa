#include "libshard/image/exif.h"

#include <algorithm>

#include "libshard/image/codec.h"

namespace shardpack::image {
namespace {

constexpr std::uint32_t kOrientationTag = 0x0112;
constexpr std::uint32_t kShort = 3, kLong = 4;
constexpr std::size_t kEntryBytes = 12;

Orientation InRange(std::uint32_t value) { return value >= 1 && value <= 8 ? static_cast<Orientation>(value) : 1; }

}  // namespace

Orientation ExifOrientation(Bytes block) {
  // Some PNG and WebP writers keep JPEG's prefix although their containers need none.
  while (AsText(block).starts_with(std::string_view("Exif\0\0", 6))) block = block.subspan(6);
  if (!Has(block, 0, 8)) return 1;
  std::string_view order = AsText(block.first(2));
  if (order != "II" && order != "MM") return 1;
  bool big_endian = order == "MM";
  if (U16(block, 2, big_endian) != 42) return 1;
  std::size_t directory = U32(block, 4, big_endian);
  if (!Has(block, directory, 2)) return 1;
  std::size_t entries = U16(block, directory, big_endian);
  for (std::size_t i = 0; i < entries; ++i) {
    std::size_t entry = directory + 2 + i * kEntryBytes;
    if (!Has(block, entry, kEntryBytes)) return 1;
    if (U16(block, entry, big_endian) != kOrientationTag) continue;
    std::uint32_t type = U16(block, entry + 2, big_endian);
    if (U32(block, entry + 4, big_endian) != 1) return 1;
    if (type == kShort) return InRange(U16(block, entry + 8, big_endian));
    if (type == kLong) return InRange(U32(block, entry + 8, big_endian));
    return 1;
  }
  return 1;
}

void PutExif(Orientation orientation, std::uint8_t* out) {
  static constexpr std::uint8_t kBlock[kExifBytes] = {
      'I',  'I',  42,     0, 8, 0, 0, 0,              // little endian; the directory is at 8
      1,    0,                                        // of one entry
      0x12, 0x01, kShort, 0, 1, 0, 0, 0, 1, 0, 0, 0,  // the orientation: one 16-bit number
      0,    0,    0,      0};                         // no other directory
  std::copy(kBlock, kBlock + kExifBytes, out);
  out[18] = orientation;
}

}  // namespace shardpack::image
