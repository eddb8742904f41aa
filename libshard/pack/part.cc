#include "libshard/pack/part.h"

namespace shardpack {
namespace {

// An input costs something beside its bytes.
constexpr std::uint64_t kInputCost = 1024;

std::uint64_t CostOf(const Plan& plan, std::uint64_t s) { return plan.NumBytes(s) + plan.NumInputs(s) * kInputCost; }

}  // namespace

std::vector<ShardRange> CutIntoParts(const Plan& plan, std::uint32_t count) {
  using Wide = unsigned __int128;
  Wide total = 0;
  for (std::uint64_t s = 0; s < plan.num_shards(); ++s) total += CostOf(plan, s);
  std::vector<ShardRange> parts(count);
  Wide before = 0;
  std::uint64_t s = 0;
  for (std::uint32_t part = 0; part < count; ++part) {
    parts[part].begin = s;
    // A shard is of the part that it begins in, so that the first part has one.
    while (s < plan.num_shards() && (part + 1 == count || before * count < total * (part + 1))) {
      before += CostOf(plan, s++);
    }
    parts[part].end = s;
  }
  return parts;
}

}  // namespace shardpack
