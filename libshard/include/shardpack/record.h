// What one stored record is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace shardpack {

using Bytes = std::span<const std::byte>;

// What the bytes of a record are once decompressed. Values are on disk: never renumber.
enum class Encoding : std::uint8_t {
  kUnknown = 0,
  kJpeg = 1,
  kPng = 2,
  kWebp = 3,
  kBmp = 4,
  kGif = 5,
  kTiff = 6,
  kPnm = 7,
  kPixels = 8,  // filtered pixels of our own, 8 or 16 bits a sample (docs/formats/pixels.md); read by ImageDecoder as any other
};
std::string_view Name(Encoding encoding);          // "jpeg", "png", ...; "unknown"
std::string_view FileExtension(Encoding encoding);  // "jpg", "png", ...; "bin"

// How the bytes of a record lie in the shard. Values are on disk: never renumber.
enum class Codec : std::uint8_t {
  kStored = 0,
  kZstd = 1,
  kZstdDictionary = 2,  // zstd with the shard's dictionary section
  kZstdBlock = 3,       // one zstd frame shared by several tiny records; offset and stored bytes are the frame's
};
std::string_view Name(Codec codec);  // "stored", "zstd", "zstd-dictionary", "zstd-block"

// The eight EXIF orientations; 1 is upright. 5 to 8 exchange width and height.
using Orientation = std::uint8_t;

// One row of the index. Width and height are those of the upright picture.
struct RecordInfo {
  std::uint64_t offset = 0;  // of the stored bytes, from the start of the shard
  std::uint32_t stored_bytes = 0;
  std::uint32_t raw_bytes = 0;  // once decompressed: the size of the encoded image
  std::int64_t label = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint8_t channels = 0;   // as encoded: 1 grey, 2 grey and alpha, 3 colour, 4 CMYK or colour and alpha
  std::uint8_t bit_depth = 0;  // bits a sample as encoded
  Encoding encoding = Encoding::kUnknown;
  Codec codec = Codec::kStored;
  Orientation orientation = 1;      // what the decoder has still to apply
  std::uint64_t stored_xxh3 = 0;    // XXH3-64 of the stored bytes
  std::uint64_t encoded_xxh3 = 0;   // XXH3-64 of the decompressed bytes

  friend bool operator==(const RecordInfo&, const RecordInfo&) = default;
};

// A 128-bit digest; its text is 32 lower-case hex digits, most significant first (XXH3's canonical form).
struct Digest128 {
  std::uint64_t high = 0, low = 0;
  std::string Hex() const;
  static Digest128 FromHex(std::string_view hex);  // throws Error with kCorruption
  friend bool operator==(const Digest128&, const Digest128&) = default;
};

// XXH3 of `bytes` with seed 0.
std::uint64_t Xxh3_64(Bytes bytes);
Digest128 Xxh3_128(Bytes bytes);

inline Bytes AsBytes(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }
inline std::string_view AsText(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

}  // namespace shardpack
