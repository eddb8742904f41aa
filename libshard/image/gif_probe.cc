#include <algorithm>
#include <cstring>
#include <optional>

#include "libshard/image/other_formats.h"

namespace shardpack::image {
namespace {

constexpr std::size_t kScreenBytes = 13;  // signature and logical screen
constexpr std::uint8_t kExtension = 0x21, kImage = 0x2C, kTrailer = 0x3B, kGraphicControl = 0xF9;

struct GifStructure {
  std::uint32_t screen_width = 0, screen_height = 0;
  std::optional<GifFrame> first;
};

class GifReader {
 public:
  explicit GifReader(Bytes bytes) : bytes_(bytes) {}

  // Walks over every block to the trailer.
  GifStructure Read() {
    Need(kScreenBytes);
    structure_.screen_width = U16(bytes_, 6, false);
    structure_.screen_height = U16(bytes_, 8, false);
    std::uint8_t flags = U8(bytes_, 10);
    at_ = kScreenBytes;
    global_colours_ = ColourTable(flags);
    while (ReadBlock()) {
    }
    if (!structure_.first) ThrowBad("corrupt GIF: no picture in it");
    return structure_;
  }

 private:
  void Need(std::size_t count) const {
    if (!Has(bytes_, at_, count)) ThrowTruncated("the GIF ends before its trailer");
  }
  std::uint8_t Next() {
    Need(1);
    return U8(bytes_, at_++);
  }

  Bytes ColourTable(std::uint8_t flags) {
    if (!(flags & 0x80)) return {};
    std::size_t size = std::size_t{3} << ((flags & 7) + 1);
    Need(size);
    Bytes table = bytes_.subspan(at_, size);
    at_ += size;
    return table;
  }

  bool ReadBlock() {
    switch (Next()) {
      case kTrailer:
        return false;
      case kExtension:
        ReadExtension();
        return true;
      case kImage:
        ReadImage();
        return true;
      case 0:
        return true;  // a stray terminator, which some writers leave
      default:
        ThrowBad("corrupt GIF: an unknown block");
    }
  }

  void ReadExtension() {
    if (Next() == kGraphicControl && Has(bytes_, at_, 5) && U8(bytes_, at_) == 4) {
      transparent_.reset();
      if (U8(bytes_, at_ + 1) & 1) transparent_ = U8(bytes_, at_ + 4);
    }
    SkipSubBlocks();
  }

  void SkipSubBlocks() {
    while (std::uint8_t size = Next()) {
      Need(size);
      at_ += size;
    }
  }

  void ReadImage() {
    Need(9);
    GifFrame frame;
    frame.x = U16(bytes_, at_, false);
    frame.y = U16(bytes_, at_ + 2, false);
    frame.width = U16(bytes_, at_ + 4, false);
    frame.height = U16(bytes_, at_ + 6, false);
    std::uint8_t flags = U8(bytes_, at_ + 8);
    at_ += 9;
    Bytes colours = ColourTable(flags);
    Next();  // LZW's first code size
    SkipSubBlocks();
    if (structure_.first) return;
    // As Pillow has it: around the frame lies its transparent colour, or else the first one.
    if (colours.empty()) colours = global_colours_;
    std::size_t entry = transparent_.value_or(0) * std::size_t{3};
    if (Has(colours, entry, 3)) std::memcpy(frame.background, colours.data() + entry, 3);
    frame.transparent = transparent_.has_value();
    structure_.first = frame;
  }

  Bytes bytes_;
  std::size_t at_ = 0;
  Bytes global_colours_;
  std::optional<std::uint8_t> transparent_;  // of the next frame
  GifStructure structure_;
};

}  // namespace

StoredInfo ProbeGif(Bytes bytes) {
  GifStructure structure = GifReader(bytes).Read();
  StoredInfo info;
  info.encoding = Encoding::kGif;
  info.width = std::max(structure.screen_width, structure.first->x + structure.first->width);
  info.height = std::max(structure.screen_height, structure.first->y + structure.first->height);
  info.channels = 3;
  info.bit_depth = 8;
  return info;
}

GifFrame FirstGifFrame(Bytes bytes) { return *GifReader(bytes).Read().first; }

}  // namespace shardpack::image
