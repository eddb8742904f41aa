// Which shards a part does.
#pragma once

#include <cstdint>
#include <vector>

#include "libshard/pack/plan_file.h"
#include "shardpack/pack.h"

namespace shardpack {

// More would be a slip of the finger, and tables of them would not fit into memory.
inline constexpr std::uint32_t kMostParts = 65'536;

// Shards [begin, end) of a plan.
struct ShardRange {
  std::uint64_t begin = 0, end = 0;
  bool Contains(std::uint64_t s) const { return s >= begin && s < end; }
};

// Of each of `count` parts, in order: runs of shards one after another that cover the plan, as equal in bytes as shards
// allow. The same on every machine.
std::vector<ShardRange> CutIntoParts(const Plan& plan, std::uint32_t count);

}  // namespace shardpack
