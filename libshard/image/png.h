// PNG through libpng.
#pragma once

#include <cstdint>

#include "libshard/image/codec.h"

namespace shardpack::image {

// Reads the header and walks over the chunks: eXIf may follow the pixels.
StoredInfo ProbePng(Bytes bytes);

// Fills `pixels` with the whole picture. Keeps no state: libpng's objects cannot be used twice.
void DecodePng(Bytes bytes, const StoredInfo& info, std::uint8_t* pixels);

}  // namespace shardpack::image
