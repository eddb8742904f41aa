// torchvision's arithmetic for where to cut and how far to resize, free of random numbers, so that each formula can be
// held against torchvision.
#pragma once

#include <cstdint>
#include <optional>

#include "shardpack/loader/transform.h"

namespace shardpack::loader {

struct CropSize {
  std::uint32_t width = 0, height = 0;
  friend bool operator==(const CropSize&, const CropSize&) = default;
};

// One try of RandomResizedCrop.get_params: a crop of area `scale` x the image's and of `aspect` = width / height;
// nullopt where it does not fit.
std::optional<CropSize> TryCrop(std::uint32_t width, std::uint32_t height, double scale, double aspect);

// Its fallback: the largest crop whose ratio lies within 3/4 to 4/3. It is cut from the middle.
CropSize FallbackCrop(std::uint32_t width, std::uint32_t height);

// Resize(size): the shorter side becomes `size`, the longer int(size * long / short). Throws Error with kUnsupported
// where that has no 32-bit size.
CropSize ResizedSize(std::uint32_t width, std::uint32_t height, std::uint32_t size);

// CenterCrop: int(round((size - crop) / 2.0)), Python's round: halves to even. Precondition: crop <= size.
std::uint32_t CentreOffset(std::uint32_t size, std::uint32_t crop);

}  // namespace shardpack::loader
