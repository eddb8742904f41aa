// What lies beside a damaged shard and can tell what it has lost.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "libshard/pack/repair_scan.h"
#include "shardpack/manifest.h"

namespace shardpack {

class Neighbours {
 public:
  // Looks for dataset.json and shards in the folder of `shard`. Throws nothing that concerns them.
  explicit Neighbours(const std::filesystem::path& shard);

  const Manifest* manifest() const noexcept { return manifest_ ? &*manifest_ : nullptr; }
  const ShardEntry* entry() const noexcept { return entry_ ? &*entry_ : nullptr; }  // of the shard, where it is named

  // The lists of class names that the shard may have had, the likeliest first. Empty where nobody knows.
  std::vector<std::vector<std::string>> ClassNames() const;

  // The first dictionary by which all of `units` (good, of Codec::kZstdDictionary) give pictures of their encoding;
  // empty for none.
  std::vector<std::byte> Dictionary(const std::vector<RepairUnit>& units) const;

 private:
  std::filesystem::path shard_;
  std::optional<Manifest> manifest_;
  std::optional<ShardEntry> entry_;
  std::vector<std::filesystem::path> siblings_;
};

}  // namespace shardpack
