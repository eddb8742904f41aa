// The folder a dataset is made in: what lies there before, and what must not lie there afterwards.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "libshard/pack/work_folder.h"
#include "shardpack/manifest.h"

namespace shardpack {

// What lies in `folder` before packing. Nothing is changed.
struct OldDataset {
  std::optional<Manifest> manifest;
  std::string damage;  // why it is not usable, where it is not: its manifest cannot be read, a shard is missing
};
// Throws Error with kInvalidArgument where the folder holds files that are not ours, or shards of which neither a
// manifest nor a conversion under way knows; kIo.
OldDataset LookAtOutput(const std::filesystem::path& folder);

// "shard-00012-5f3a9c01.shard"
std::string ShardFileName(std::uint64_t number, const Digest128& file_digest);
bool IsShardFileName(std::string_view name);

// Removes shards in `folder` that `manifest` does not name. Never throws: what cannot be removed stays.
void RemoveUnnamedShards(const std::filesystem::path& folder, const Manifest& manifest) noexcept;

}  // namespace shardpack
