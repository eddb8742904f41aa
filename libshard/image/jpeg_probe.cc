#include <array>

#include "libshard/image/exif.h"
#include "libshard/image/jpeg.h"

namespace shardpack::image {
namespace {

constexpr std::uint32_t kMaxDimension = 65500;  // libjpeg's own

enum Marker : std::uint8_t {
  kTem = 0x01,
  kSof0 = 0xC0,
  kSof1 = 0xC1,
  kSof2 = 0xC2,
  kDht = 0xC4,
  kSof9 = 0xC9,
  kSof10 = 0xCA,
  kDac = 0xCC,
  kSof15 = 0xCF,
  kRst0 = 0xD0,
  kRst7 = 0xD7,
  kSoi = 0xD8,
  kEoi = 0xD9,
  kSos = 0xDA,
  kDqt = 0xDB,
  kDnl = 0xDC,
  kDri = 0xDD,
  kApp0 = 0xE0,
  kApp1 = 0xE1,
  kApp15 = 0xEF,
  kCom = 0xFE,
};

bool IsFrame(std::uint8_t m) { return m >= kSof0 && m <= kSof15 && m != kDht && m != kDac; }
bool IsSupportedFrame(std::uint8_t m) { return m <= kSof2 || m == kSof9 || m == kSof10; }
bool HasNoLength(std::uint8_t m) { return m == kTem || (m >= kRst0 && m <= kRst7); }
bool IsSkipped(std::uint8_t m) {
  return m == kDht || m == kDac || m == kDqt || m == kDnl || m == kDri || (m >= kApp0 && m <= kApp15) || m == kCom;
}

class HeaderReader {
 public:
  explicit HeaderReader(Bytes bytes) : bytes_(bytes) { info_.encoding = Encoding::kJpeg; }

  StoredInfo Read() {
    at_ = 2;  // the start marker, which DetectEncoding() saw
    for (;;) {
      std::uint8_t marker = NextMarker();
      if (marker == kSos) break;
      if (marker == kEoi) ThrowBad("corrupt JPEG: no picture before the end marker");
      if (HasNoLength(marker)) continue;
      if (!IsFrame(marker) && !IsSkipped(marker)) ThrowBad("corrupt JPEG: unexpected marker " + std::to_string(marker));
      ReadSegment(marker);
    }
    if (!saw_frame_) ThrowBad("corrupt JPEG: a scan before the frame header");
    info_.fewest_bytes = FewestBytes();
    return info_;
  }

  int Chroma() const {
    if (info_.channels != 3 || sampling_[1] != 0x11 || sampling_[2] != 0x11) return 0;
    switch (sampling_[0]) {
      case 0x11:
        return 444;
      case 0x21:
        return 422;
      case 0x22:
        return 420;
      default:
        return 0;
    }
  }

 private:
  // As libjpeg's: stray bytes before a marker are passed over, fill bytes too.
  std::uint8_t NextMarker() {
    for (;;) {
      while (Next() != 0xFF) {
      }
      std::uint8_t code;
      do code = Next();
      while (code == 0xFF);
      if (code != 0) return code;
    }
  }

  std::uint8_t Next() {
    if (at_ >= bytes_.size()) ThrowTruncated("the file ends within its header");
    return U8(bytes_, at_++);
  }

  void ReadSegment(std::uint8_t marker) {
    if (!Has(bytes_, at_, 2)) ThrowTruncated("the file ends within its header");
    std::size_t length = U16(bytes_, at_, true);
    if (length < 2) length = 2;  // libjpeg skips such segments the same way
    if (!Has(bytes_, at_, length)) ThrowTruncated("the file ends within its header");
    Bytes body = bytes_.subspan(at_ + 2, length - 2);
    at_ += length;
    if (IsFrame(marker)) ReadFrame(marker, body);
    if (marker == kApp1 && !saw_exif_ && AsText(body).starts_with(std::string_view("Exif\0", 5))) {
      saw_exif_ = true;
      info_.orientation = ExifOrientation(body.size() < 6 ? Bytes{} : body.subspan(6));
    }
  }

  void ReadFrame(std::uint8_t marker, Bytes body) {
    if (body.size() < 6) ThrowBad("corrupt JPEG: short frame header");
    std::uint32_t bits = U8(body, 0);
    if (bits != 8) ThrowBad(std::to_string(bits) + " bits a sample are not supported");
    if (!IsSupportedFrame(marker)) {
      ThrowBad("JPEG coding process " + std::to_string(marker - kSof0) + " is not supported");
    }
    if (saw_frame_) ThrowBad("corrupt JPEG: two frame headers");
    saw_frame_ = true;
    frame_ = marker;
    info_.bit_depth = 8;
    info_.height = U16(body, 1, true);
    info_.width = U16(body, 3, true);
    info_.channels = U8(body, 5);
    if (body.size() != 6 + std::size_t{3} * info_.channels) ThrowBad("corrupt JPEG: frame header of the wrong length");
    if (info_.channels != 1 && info_.channels != 3 && info_.channels != 4) {
      ThrowBad(std::to_string(info_.channels) + " colour components are not supported");
    }
    for (std::size_t i = 0; i < info_.channels; ++i) sampling_[i] = U8(body, 7 + 3 * i);
    if (info_.width > kMaxDimension || info_.height > kMaxDimension) {
      ThrowBad("JPEGs wider or higher than " + std::to_string(kMaxDimension) + " are not supported");
    }
  }

  // Huffman codes have one bit a block at least, and with the oddest sampling factors there is a block for each 32 x 32
  // pixels. Arithmetic coding has no such bound.
  std::uint64_t FewestBytes() const {
    if (frame_ == kSof9 || frame_ == kSof10) return 0;
    return std::uint64_t{info_.width} * info_.height / (32 * 32 * 8);
  }

  Bytes bytes_;
  std::size_t at_ = 0;
  std::uint8_t frame_ = 0;
  StoredInfo info_;
  std::array<std::uint8_t, 4> sampling_{};  // horizontal and vertical factor of each component
  bool saw_frame_ = false, saw_exif_ = false;
};

}  // namespace

StoredInfo ProbeJpeg(Bytes bytes) { return HeaderReader(bytes).Read(); }

int ProbeChroma(Bytes bytes) {
  HeaderReader reader(bytes);
  reader.Read();
  return reader.Chroma();
}

}  // namespace shardpack::image
