// The orientation out of an EXIF block.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shardpack/record.h"

namespace shardpack::image {

// `block` is a TIFF structure, with or without "Exif\0\0" before it. 1 where there is no orientation, where it is
// not 1..8, or where the block is damaged: metadata never makes a picture bad.
Orientation ExifOrientation(Bytes block);

// A block that holds the orientation and nothing else, without "Exif\0\0".
inline constexpr std::size_t kExifBytes = 26;
void PutExif(Orientation orientation, std::uint8_t* out);

}  // namespace shardpack::image
