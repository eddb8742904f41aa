// Grey pixels made RGB, with whatever vectors the processor has.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardpack::image {

// `rows` rows of `width` grey pixels, `stride` apart, to RGB rows without gaps.
void GreyToRgb(const std::uint8_t* grey, std::size_t stride, std::size_t width, std::size_t rows, std::uint8_t* rgb);

}  // namespace shardpack::image
