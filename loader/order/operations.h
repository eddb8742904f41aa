// What random numbers are drawn for: the `operation` of Philox. The values decide orders and pictures: never renumber.
#pragma once

#include <cstdint>

namespace shardpack::loader {

inline constexpr std::uint32_t kAugmentOperation = 0;     // crop, then flip
inline constexpr std::uint32_t kSubstituteOperation = 1;  // which record stands in for a bad one
inline constexpr std::uint32_t kShuffleOperation =
    2;  // keys of the epoch's permutation; `sample` is the number of samples

}  // namespace shardpack::loader
