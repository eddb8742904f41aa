// What the codecs share: how a bad picture is reported, and reads that never leave the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "shardpack/image.h"
#include "shardpack/record.h"

namespace shardpack::image {

// Throws Error with kBadInput.
[[noreturn]] void ThrowBad(const std::string& reason);
[[noreturn]] void ThrowTruncated(const std::string& what);  // "truncated: " + what

// What a codec's own header reading gives: the picture as stored, `width` and `height` being those before `orientation`
// is applied. image.cc checks limits and turns them.
struct StoredInfo : ImageInfo {
  // A file of this size has so many bytes at least: checked before memory is taken for the pixels that a few bytes
  // promise.
  std::uint64_t fewest_bytes = 0;
};

// Refuses pictures without pixels and those over the limit.
void CheckSize(const StoredInfo& info, const ImageLimits& limits);

// What the codec that the first bytes name reads of the header, checked: size, limits, fewest bytes.
StoredInfo CheckedStored(Bytes bytes, const ImageLimits& limits);

// Rows [first, end) of a picture.
struct Rows {
  std::uint32_t first, end;
};

// Reads of big- and little-endian numbers. Precondition: the bytes are there; Has() says so.
inline bool Has(Bytes bytes, std::size_t at, std::size_t count) {
  return at <= bytes.size() && count <= bytes.size() - at;
}
inline std::uint8_t U8(Bytes bytes, std::size_t at) { return static_cast<std::uint8_t>(bytes[at]); }
inline std::uint32_t U16(Bytes bytes, std::size_t at, bool big_endian) {
  std::uint32_t a = U8(bytes, at), b = U8(bytes, at + 1);
  return big_endian ? a << 8 | b : b << 8 | a;
}
inline std::uint32_t U32(Bytes bytes, std::size_t at, bool big_endian) {
  std::uint32_t a = U16(bytes, at, big_endian), b = U16(bytes, at + 2, big_endian);
  return big_endian ? a << 16 | b : b << 16 | a;
}

}  // namespace shardpack::image
