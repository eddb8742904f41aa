// What shardinfo says of a dataset or shard, gathered before any of it is printed.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "shardpack/dataset.h"

namespace shardpack::tools {

// Of a histogram; zeros where it is empty. The median of an even number of values is the lower one in the middle.
struct Spread {
  std::uint32_t min = 0, median = 0, max = 0;
};
Spread SpreadOf(const Histogram& histogram);

// In steps of the 8-bit values; zeros where there are no pixels.
struct ChannelStatistics {
  std::array<double, 3> mean{}, deviation{};
};
ChannelStatistics StatisticsOf(const ChannelSums& sums);

struct Description {
  std::string path;
  bool is_shard = false;                     // one file, no manifest
  Manifest manifest;                         // of a shard alone: what its index tells
  std::vector<std::uint64_t> class_records;  // by label; empty where labels are no classes
};

// Throws what Dataset::Open throws.
Description Describe(const std::string& path, const Dataset& dataset);

}  // namespace shardpack::tools
