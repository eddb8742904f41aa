// PNG through libpng.
#pragma once

#include <cstdint>

#include "libshard/image/codec.h"
#include "shardpack/transcode.h"

namespace shardpack::image {

// Reads the header and walks over the chunks: eXIf may follow the pixels.
StoredInfo ProbePng(Bytes bytes);

// Fills `pixels` with the whole picture. Keeps no state: libpng's objects cannot be used twice.
void DecodePng(Bytes bytes, const StoredInfo& info, std::uint8_t* pixels);

// Every sample as it is, alpha too (see Samples); orientation is left alone.
void DecodePng(Bytes bytes, const StoredInfo& info, Samples& out);
bool HasPalette(Bytes png);  // after ProbePng()

}  // namespace shardpack::image
