// Encoded images turned into other encodings while packing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "shardpack/image.h"
#include "shardpack/record.h"

namespace shardpack {

// Samples as the file holds them: no orientation applied, palettes expanded, bits below 8 scaled to 8, 16 bits kept.
struct Samples {
  std::uint32_t width = 0, height = 0;  // as stored, not turned
  std::uint8_t channels = 0;            // 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha
  std::uint8_t bit_depth = 8;           // 8 or 16
  Orientation orientation = 1;
  std::vector<std::byte> data;  // rows without gaps; 16-bit samples little endian
};

// One a thread; keeps codec state and scratch memory between images. All members throw Error with kBadInput as
// ImageDecoder does.
class Transcoder {
 public:
  explicit Transcoder(ImageLimits limits = {});
  Transcoder(Transcoder&&) noexcept;
  Transcoder& operator=(Transcoder&&) noexcept;
  ~Transcoder();

  // The same quantised DCT coefficients as a baseline JPEG (sequential, Huffman) with optimised tables and a restart
  // marker after each row of MCUs; markers that decoding depends on (JFIF, Adobe, EXIF orientation, ICC) are kept.
  // `side_data`: where each row of MCUs begins (docs/formats/pixels.md). False, with `out` untouched, where baseline
  // cannot hold it.
  bool JpegToBaseline(Bytes jpeg, std::vector<std::byte>& out, std::vector<std::byte>& side_data);

  // Whether the pictures hold the same coefficients and decode to the same pixels.
  bool SamePixels(Bytes a, Bytes b);

  // PNG, BMP, PNM, GIF (first frame), TIFF to samples; JPEG and WebP to 8-bit RGB.
  void Decode(Bytes image, Samples& out);

  // JPEG of 8-bit RGB or grey pixels, upright. `chroma` as J:a:b: 444, 422, 420.
  void EncodeJpeg(const Image& image, bool grey, int quality, int chroma, std::vector<std::byte>& out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Encoding::kPixels (docs/formats/pixels.md): a header, a filter a row as PNG has them, filtered samples; for zstd to
// compress. The filter is chosen with integers alone. `out` is replaced.
void EncodePixels(const Samples& samples, std::vector<std::byte>& out);
// The inverse. Throws Error with kBadInput.
void DecodePixels(Bytes pixels, const ImageLimits& limits, Samples& out);

// What `extract` writes for private encodings: PNG of any samples, orientation in eXIf.
std::vector<std::byte> EncodePng(const Samples& samples);

}  // namespace shardpack
