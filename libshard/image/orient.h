// Turning stored pixels upright.
#pragma once

#include <cstdint>

#include "shardpack/record.h"

namespace shardpack::image {

inline bool SwapsAxes(Orientation orientation) { return orientation >= 5; }

// Writes the `width` x `height` RGB picture `stored` to `upright` as EXIF's `orientation` asks. The two do not overlap.
void Orient(const std::uint8_t* stored, std::uint32_t width, std::uint32_t height, Orientation orientation,
            std::uint8_t* upright);

}  // namespace shardpack::image
