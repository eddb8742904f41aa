// Many shards as one array of records.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardpack/manifest.h"
#include "shardpack/record.h"
#include "shardpack/shard_reader.h"

namespace shardpack {

// A dataset opened for reading. Copies share the open shards. All const members may be called from any thread; shards
// are opened (mapped) at their first use and stay open. Throws as ShardReader does; a shard that is missing, or whose
// size or index is not the manifest's, is kCorruption.
class Dataset {
 public:
  // `path` is a dataset's folder, its dataset.json, or one shard file (a dataset of one shard without a manifest).
  static Dataset Open(const std::filesystem::path& path);

  std::uint64_t size() const noexcept;  // number of records
  const Manifest& manifest() const noexcept;
  const std::filesystem::path& folder() const noexcept;
  const Digest128& digest() const noexcept;  // manifest().dataset_digest

  struct Place {
    std::uint32_t shard = 0;
    std::uint64_t record = 0;  // within the shard
  };
  // Precondition for all: index < size().
  Place PlaceOf(std::uint64_t index) const;
  std::uint64_t IndexOf(Place place) const;
  RecordInfo Info(std::uint64_t index) const;
  std::string_view Key(std::uint64_t index) const;  // lives as long as a copy of this dataset
  void Read(std::uint64_t index, std::vector<std::byte>& out) const;

  std::optional<std::uint64_t> Find(std::string_view key) const;

  // Over all shards; see ShardReader.
  std::uint64_t NumClassmates(std::int64_t label) const;
  std::uint64_t Classmate(std::int64_t label, std::uint64_t k) const;  // an index into the dataset

  std::uint32_t num_shards() const noexcept;
  const ShardReader& shard(std::uint32_t s) const;

  // Looks once at the file of each shard, without opening it. Throws Error with kCorruption, naming the shard, where
  // one is missing or has not the manifest's size.
  void CheckShards() const;

 private:
  struct Impl;
  explicit Dataset(std::shared_ptr<const Impl> impl) noexcept;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace shardpack
