// What must be known of colour profiles.
#pragma once

#include "shardpack/record.h"

namespace shardpack::image {

// Whether an ICC profile calls itself sRGB, which is what a picture without a profile is taken for.
bool IsSrgbProfile(Bytes profile);

}  // namespace shardpack::image
