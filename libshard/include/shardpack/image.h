// Encoded images: what they are, and their pixels. The rules for unusual inputs are in docs/inputs.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "shardpack/record.h"

namespace shardpack {

struct ImageLimits {
  // Pictures of more pixels are refused from their header, before any memory is taken for them.
  std::uint64_t max_pixels = 512ull << 20;
};

// Read from the header alone. Width and height are those of the upright picture.
struct ImageInfo {
  Encoding encoding = Encoding::kUnknown;
  std::uint32_t width = 0, height = 0;
  std::uint8_t channels = 0;   // as encoded, see RecordInfo
  std::uint8_t bit_depth = 0;
  Orientation orientation = 1;  // what the decoder applies: out of EXIF (JPEG, PNG's eXIf, WebP) or TIFF's own tag
};

// The first bytes decide, never a name. kUnknown where none of the formats begins so.
Encoding DetectEncoding(Bytes bytes);

// Throws Error with kBadInput; the reason is one line ("empty file", "not an image of a known format", "truncated: ...",
// "60000x60000 pixels are over the limit of ...", "12 bits a sample are not supported").
ImageInfo ProbeImage(Bytes bytes, const ImageLimits& limits = {});

// 8-bit RGB, rows of width * 3 bytes without gaps, upright.
struct Image {
  std::uint32_t width = 0, height = 0;
  std::vector<std::uint8_t> pixels;  // height * width * 3
};

// Decodes images one after another, keeping codec state and scratch memory between them. One decoder a thread: not
// thread-safe. Everything it returns is complete: a file that ends early or whose own checksums fail throws, no partly
// grey picture is ever returned. Pixels equal libjpeg-turbo's accurate integer DCT with fancy upsampling (what Pillow uses), libpng's,
// libwebp's.
class ImageDecoder {
 public:
  explicit ImageDecoder(ImageLimits limits = {});
  ImageDecoder(ImageDecoder&&) noexcept;
  ImageDecoder& operator=(ImageDecoder&&) noexcept;
  ~ImageDecoder();

  // Replaces `out`, keeping its capacity. Throws Error with kBadInput (see ProbeImage).
  void Decode(Bytes bytes, Image& out);

  // As Decode, but only rows [first_row, end_row) of the upright picture must be right; other rows of `out` may hold
  // anything. Lets a JPEG pass over the rows above and stop after the last one needed. `out` still has the whole picture's
  // size.
  // Damage that shows only outside of these rows may go unnoticed.
  void DecodeRows(Bytes bytes, std::uint32_t first_row, std::uint32_t end_row, Image& out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Lossless PNG and binary PPM (P6) of an image, for `cat --decode`.
std::vector<std::byte> EncodePng(const Image& image);
std::vector<std::byte> EncodePpm(const Image& image);

}  // namespace shardpack
