// Shards of real pictures in every encoding and codec that packing makes, for tests of what changes shards.
#pragma once

#include <string>

#include "tests/support/shard_builder.h"

namespace shardpack::test {

// Eleven records: PNG stored and under zstd with the dictionary, a JPEG with the positions of its rows, filtered pixels
// under zstd, and two blocks of three and of two. Keys are "PREFIX/0.png", ...; the class names are "ant", "bee",
// "cat". One has metadata.
ShardBuilder PictureShard(const std::string& prefix, std::uint64_t sync_marker);

}  // namespace shardpack::test
