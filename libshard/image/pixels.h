// Encoding::kPixels: the header, and decoding to what the other codecs decode to.
#pragma once

#include <cstdint>
#include <vector>

#include "libshard/image/codec.h"
#include "shardpack/transcode.h"

namespace shardpack::image {

inline constexpr std::string_view kPixelsMagic = "\x91SPX";
inline constexpr std::size_t kPixelsHeaderBytes = 16;

// Size and header are checked: the rows are all there and nothing follows them.
StoredInfo ProbePixels(Bytes bytes);

// 8-bit RGB of rows [0, rows.end), as stored; rows.first costs nothing less, for rows build on those above.
class PixelsDecoder {
 public:
  void Decode(Bytes bytes, const StoredInfo& info, Rows rows, std::uint8_t* pixels);

 private:
  template <typename Sample>
  void DecodeScaled(Bytes bytes, const StoredInfo& info, std::uint32_t end_row, std::uint8_t* pixels);
  void DecodeGrey(Bytes bytes, const StoredInfo& info, std::uint32_t end_row, std::uint8_t* pixels);

  std::vector<std::uint16_t> rows_;  // two rows of samples
  std::vector<std::uint8_t> to8_;    // of 16-bit samples, made for `to8_maximum_`
  std::uint32_t to8_maximum_ = 0;
};

// A 16-bit sample scaled to 8 bits; `maximum` as in Samples.
inline std::uint8_t ScaledTo8(std::uint32_t value, std::uint32_t maximum) {
  if (maximum == 0) return static_cast<std::uint8_t>(value >> 8);
  if (value >= maximum) return 255;
  return static_cast<std::uint8_t>((value * 255 + maximum / 2) / maximum);
}

}  // namespace shardpack::image
