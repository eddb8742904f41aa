// PBM, PGM and PPM, as text and binary (P1 to P6).
#pragma once

#include <cstdint>

#include "libshard/image/codec.h"
#include "shardpack/transcode.h"

namespace shardpack::image {

// Refuses a binary file that is too short for its pixels.
StoredInfo ProbePnm(Bytes bytes);

// Fills `pixels`; samples are scaled from the file's maximum to 255 and rounded. A text file that was cut within or
// after its last number cannot be told from a whole one.
void DecodePnm(Bytes bytes, const StoredInfo& info, std::uint8_t* pixels);

// Samples of more than 8 bits unscaled, with their largest value (see Samples).
void DecodePnm(Bytes bytes, const StoredInfo& info, Samples& out);

}  // namespace shardpack::image
