// WebP through libwebp.
#pragma once

#include <cstdint>

#include "libshard/image/codec.h"

namespace shardpack::image {

StoredInfo ProbeWebp(Bytes bytes);

// Fills `pixels` with the whole picture; of an animation, with its first frame on a black canvas.
void DecodeWebp(Bytes bytes, const StoredInfo& info, std::uint8_t* pixels);

}  // namespace shardpack::image
