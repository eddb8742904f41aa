// The zstd dictionary of a dataset's tiny records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "shardpack/record.h"

namespace shardpack {

// Trained on every other one of `sample` and weighed on the rest, so that it is not praised for what it knows by heart.
// With `bytes`, of about that size: throws Error with kInvalidArgument below 256. Without, of the size that gains most:
// what it saves over `total_records` must be more than its two copies in each of `num_shards` shards. Empty where none
// does, where the sample is too small to learn from, and for `bytes` = 0. Equal input gives equal bytes for one version
// of zstd.
std::vector<std::byte> ChooseDictionary(const std::vector<Bytes>& sample, int level, std::uint64_t total_records,
                                        std::uint64_t num_shards, std::optional<std::uint64_t> bytes);

}  // namespace shardpack
