// Which input goes into which shard, fixed before any work.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libshard/pack/scan.h"
#include "shardpack/pack.h"

namespace shardpack {

// A run of consecutive inputs.
struct InputRange {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t bytes = 0;

  std::uint64_t size() const { return end - begin; }
};

// Cuts before a shard would pass `shard_bytes` of input, or after `shard_records` where given. A larger input has a
// shard to itself.
std::vector<InputRange> CutIntoShards(const std::vector<Input>& inputs, std::uint64_t shard_bytes,
                                      std::optional<std::uint64_t> shard_records);

// Cuts a shard's inputs into pieces that one task reads and writes at once: small enough to be many, large enough that
// handing them over costs nothing. The cut touches no output.
std::vector<InputRange> CutIntoBatches(const std::vector<Input>& inputs, const InputRange& shard);

// The options that change what is written, as they stand in the manifest.
std::map<std::string, std::string> ContentOptions(const PackOptions& options);

// Of the options and of the inputs' keys and sizes.
Digest128 RequestDigest(const PackOptions& options, const Inputs& inputs);

// Precedes every record of shard number `shard`.
std::uint64_t SyncMarker(const Digest128& request, std::uint64_t shard);

}  // namespace shardpack
