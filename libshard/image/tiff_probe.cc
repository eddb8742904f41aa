#include <algorithm>
#include <array>

#include "libshard/image/other_formats.h"

namespace shardpack::image {
namespace {

constexpr std::size_t kEntryBytes = 12;
constexpr std::uint32_t kMaxPages = 65536;
constexpr std::uint32_t kUnsignedSamples = 1, kFloatSamples = 3;
constexpr std::uint32_t kPlain = 1, kCcitt = 5, kDeflate = 8, kOldDeflate = 32946, kPackBits = 32773;
constexpr std::uint32_t kRgb = 2, kPalette = 3;  // 0 and 1 are grey
constexpr std::uint32_t kNoExtra = 0, kUnassociatedAlpha = 2;

enum Tag : std::uint32_t {
  kWidth = 256,
  kHeight = 257,
  kBits = 258,
  kCompression = 259,
  kPhotometric = 262,
  kStripOffsets = 273,
  kOrientation = 274,
  kSamples = 277,
  kStripBytes = 279,
  kTileOffsets = 324,
  kTileBytes = 325,
  kExtraSamples = 338,
  kSampleFormat = 339,
};

// One entry of a directory: numbers in the entry itself or somewhere in the file.
struct Entry {
  std::uint32_t type = 0, count = 0;
  std::size_t at = 0;
};

class TiffReader {
 public:
  explicit TiffReader(Bytes bytes) : bytes_(bytes), big_endian_(AsText(bytes).starts_with("MM")) {}

  StoredInfo Read() {
    Need(0, 8);
    if (U16(bytes_, 2, big_endian_) != 42) ThrowBad("BigTIFF is not supported");
    std::size_t directory = U32(bytes_, 4, big_endian_);
    if (directory == 0) ThrowBad("corrupt TIFF: no page in it");
    StoredInfo info = ReadPage(directory);
    CheckOtherPages(directory);
    return info;
  }

  bool IsGrey() const { return Photometric() < kRgb; }

  bool IsPlain() const {
    const std::size_t directory = U32(bytes_, 4, big_endian_);
    const std::uint32_t compression = Value(directory, kCompression, kPlain);
    const bool lossless = (compression >= kPlain && compression <= kCcitt) || compression == kDeflate ||
                          compression == kOldDeflate || compression == kPackBits;
    const std::uint32_t colours = Photometric() == kRgb ? 3 : 1, samples = Value(directory, kSamples, 1);
    const bool alpha = samples == colours + 1 && Photometric() != kPalette &&
                       Value(directory, kExtraSamples, kNoExtra) == kUnassociatedAlpha;
    return lossless && Photometric() <= kPalette && (samples == colours || alpha) && SamplesAreAlike(directory) &&
           Value(directory, kSampleFormat, kUnsignedSamples) == kUnsignedSamples;
  }

 private:
  void Need(std::size_t at, std::size_t count) const {
    if (!Has(bytes_, at, count)) ThrowTruncated("the TIFF ends before its last value");
  }

  std::size_t Entries(std::size_t directory) const {
    Need(directory, 2);
    std::size_t entries = U16(bytes_, directory, big_endian_);
    Need(directory + 2, entries * kEntryBytes + 4);
    return entries;
  }

  static std::size_t TypeBytes(std::uint32_t type) {
    static constexpr std::array<std::uint8_t, 14> kBytes = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4};
    return type < kBytes.size() ? kBytes[type] : 0;
  }

  Entry ReadEntry(std::size_t at) const {
    Entry entry{U16(bytes_, at + 2, big_endian_), U32(bytes_, at + 4, big_endian_), at + 8};
    std::uint64_t size = std::uint64_t{entry.count} * TypeBytes(entry.type);
    if (size > 4) {
      entry.at = U32(bytes_, at + 8, big_endian_);
      Need(entry.at, size);
    }
    return entry;
  }

  Entry Find(std::size_t directory, std::uint32_t tag) const {
    std::size_t entries = Entries(directory);
    for (std::size_t i = 0; i < entries; ++i) {
      std::size_t at = directory + 2 + i * kEntryBytes;
      if (U16(bytes_, at, big_endian_) == tag) return ReadEntry(at);
    }
    return {};
  }

  std::uint32_t Value(const Entry& entry, std::uint32_t i) const {
    switch (entry.type) {
      case 1:
        return U8(bytes_, entry.at + i);
      case 3:
        return U16(bytes_, entry.at + i * std::size_t{2}, big_endian_);
      case 4:
        return U32(bytes_, entry.at + i * std::size_t{4}, big_endian_);
      default:
        ThrowBad("corrupt TIFF: a number of the wrong type");
    }
  }

  std::uint32_t Value(std::size_t directory, Tag tag, std::uint32_t otherwise) const {
    Entry entry = Find(directory, tag);
    return entry.count == 0 ? otherwise : Value(entry, 0);
  }

  StoredInfo ReadPage(std::size_t directory) const {
    for (std::size_t i = 0, n = Entries(directory); i < n; ++i) ReadEntry(directory + 2 + i * kEntryBytes);
    StoredInfo info;
    info.encoding = Encoding::kTiff;
    info.width = Value(directory, kWidth, 0);
    info.height = Value(directory, kHeight, 0);
    std::uint32_t bits = Value(directory, kBits, 1), samples = Value(directory, kSamples, 1);
    if (bits > 16) ThrowBad(std::to_string(bits) + " bits a sample are not supported");
    if (Value(directory, kSampleFormat, 1) == kFloatSamples) ThrowBad("floating-point samples are not supported");
    std::uint32_t photometric = Value(directory, kPhotometric, 1);
    if (photometric > 6 || photometric == 4) {
      ThrowBad("TIFF colour space " + std::to_string(photometric) + " is not supported");
    }
    std::uint32_t orientation = Value(directory, kOrientation, 1);
    info.bit_depth = static_cast<std::uint8_t>(bits);
    info.channels = static_cast<std::uint8_t>(photometric == 3 ? 3 : std::clamp(samples, 1u, 4u));
    info.orientation = static_cast<Orientation>(orientation >= 1 && orientation <= 8 ? orientation : 1);
    CheckPixels(directory, kStripOffsets, kStripBytes);
    CheckPixels(directory, kTileOffsets, kTileBytes);
    return info;
  }

  std::uint32_t Photometric() const { return Value(U32(bytes_, 4, big_endian_), kPhotometric, 1); }

  bool SamplesAreAlike(std::size_t directory) const {
    const Entry bits = Find(directory, kBits);
    for (std::uint32_t i = 1; i < bits.count; ++i) {
      if (Value(bits, i) != Value(bits, 0)) return false;
    }
    return true;
  }

  // Every strip or tile lies in the file.
  void CheckPixels(std::size_t directory, Tag offsets_tag, Tag bytes_tag) const {
    Entry offsets = Find(directory, offsets_tag), sizes = Find(directory, bytes_tag);
    for (std::uint32_t i = 0; i < std::min(offsets.count, sizes.count); ++i) Need(Value(offsets, i), Value(sizes, i));
  }

  // Later pages are not decoded, but a file that was cut off often ends with their directories.
  void CheckOtherPages(std::size_t directory) const {
    for (std::uint32_t page = 0; page < kMaxPages; ++page) {
      directory = U32(bytes_, directory + 2 + Entries(directory) * kEntryBytes, big_endian_);
      if (directory == 0) return;
      Need(directory, 2);
    }
    ThrowBad("corrupt TIFF: its pages have no end");
  }

  Bytes bytes_;
  bool big_endian_;
};

}  // namespace

StoredInfo ProbeTiff(Bytes bytes) { return TiffReader(bytes).Read(); }

bool IsPlainTiff(Bytes bytes) { return TiffReader(bytes).IsPlain(); }
bool IsGreyTiff(Bytes bytes) { return TiffReader(bytes).IsGrey(); }

}  // namespace shardpack::image
