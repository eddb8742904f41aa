// Encoded images turned into other encodings while packing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "shardpack/image.h"
#include "shardpack/record.h"

namespace shardpack {

// Samples as the file holds them: no orientation applied, palettes expanded, fewer than 8 bits scaled to 8, more than 8
// kept.
struct Samples {
  std::uint32_t width = 0, height = 0;  // as stored, not turned
  std::uint8_t channels = 0;            // 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha
  std::uint8_t bit_depth = 8;           // 8 or 16
  // How 16-bit samples become 8-bit ones. 0: they go up to 65535 and the high byte is taken (PNG). Else: they go up to
  // this, and are scaled and rounded (TIFF, PNM).
  std::uint16_t maximum = 0;
  Orientation orientation = 1;
  std::vector<std::byte> data;  // rows without gaps; 16-bit samples little endian

  friend bool operator==(const Samples&, const Samples&) = default;
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
  // marker after each row of MCUs; markers that decoding depends on (JFIF, Adobe, EXIF orientation, ICC but for sRGB)
  // are kept. `side_data`: where each row of MCUs begins (docs/formats/pixels.md). False, with both untouched, where
  // baseline cannot hold it.
  bool JpegToBaseline(Bytes jpeg, std::vector<std::byte>& out, std::vector<std::byte>& side_data);

  // Whether both decode to the same samples and orientation, and to the same upright pixels; two JPEGs also hold the
  // same coefficients.
  bool SamePixels(Bytes a, Bytes b);

  // PNG, BMP, PNM, GIF (first frame), TIFF and filtered pixels to samples; JPEG and WebP to 8-bit RGB. Of GIF, BMP and
  // PNG with a palette, which cannot say that they are grey, those with grey colours alone become grey.
  void Decode(Bytes image, Samples& out);

  // JPEG of 8-bit RGB or grey pixels (the first channel), upright, optimised and with restart markers as above.
  // `chroma` as J:a:b: 444, 422, 420; quality 1 to 100.
  void EncodeJpeg(const Image& image, bool grey, int quality, int chroma, std::vector<std::byte>& out,
                  std::vector<std::byte>& side_data);

  // Frees the memory that pictures left behind.
  void Release();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Whether Decode() gives all of a picture that a file of its format can hold: false for JPEG and WebP, for TIFFs of
// inks, in YCbCr or coded by JPEG, with signed samples, further channels or premultiplied colours, and BMPs with unusual
// masks. Throws as ProbeImage does.
bool HoldsSamples(Bytes image, const ImageLimits& limits = {});

// How a JPEG's chroma is sampled: 444, 422 or 420; 0 where it is another way, or it has none.
int JpegChroma(Bytes jpeg);

// Encoding::kPixels (docs/formats/pixels.md): a header, a filter a row as PNG has them, filtered samples; for zstd to
// compress. The filter is chosen with integers alone. `out` is replaced.
void EncodePixels(const Samples& samples, std::vector<std::byte>& out);
// The inverse. Throws Error with kBadInput.
void DecodePixels(Bytes pixels, const ImageLimits& limits, Samples& out);

// What `extract` writes for private encodings: PNG of any samples, orientation in eXIf.
std::vector<std::byte> EncodePng(const Samples& samples);

}  // namespace shardpack
