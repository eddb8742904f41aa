// What is left of a damaged shard: its index, where it can be read, and the records behind good record headers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libshard/store/mapped_file.h"
#include "shardpack/pack.h"
#include "shardpack/shard_reader.h"

namespace shardpack {

// A record, or the records of a block, with a good payload or a harmed one. Views point into the shard.
struct RepairUnit {
  std::uint64_t number = 0, count = 1;  // records; `count` is 1 for a block that only the scan knows
  std::uint64_t begin = 0, end = 0;     // in the file, with header and padding
  Bytes payload;
  bool good = false;      // the payload is all there and has its checksum
  bool by_index = false;  // key, metadata, sizes and the like are those of the index, which is right about this record
  // Of the header, where `by_index` is false.
  std::string_view key;
  Bytes metadata;
  std::int64_t label = 0;
  std::uint8_t encoding = 0, codec = 0;
};

// Views end with the object. Const members from any thread.
class DamagedShard {
 public:
  // Throws Error with kNotFound, kIo, kCorruption (no shard, or nothing is left of it), kUnsupported (newer).
  explicit DamagedShard(const std::filesystem::path& path);

  Bytes bytes() const noexcept { return file_.bytes(); }
  std::uint64_t sync_marker() const noexcept { return sync_marker_; }
  const ShardReader* index() const noexcept { return index_ ? &*index_ : nullptr; }  // null where it cannot be opened
  // Every row, key, metadata and side data of the index, the class names and the dictionary can be read.
  bool index_is_whole() const noexcept { return index_is_whole_; }

  // All units by number, each number once. `check` is called now and then and may throw.
  std::vector<RepairUnit> Units(const std::function<void(std::uint64_t bytes)>& check) const;

  // How many records the shard had: as the index says, else as rows without a checksum show that lie where the index
  // would be; nullopt where the file ends before. `units`: as above.
  std::optional<std::uint64_t> NumRecords(const std::vector<RepairUnit>& units) const;
  // Where the last payload ended, as the index says; nullopt without one.
  std::optional<std::uint64_t> PayloadEnd() const;

 private:
  bool ReadWholeIndex() const;
  std::vector<RepairUnit> UnitsOfIndex() const;
  RepairUnit UnitOfRow(std::uint64_t i) const;
  std::vector<RepairUnit> UnitsOfScan(const std::function<void(std::uint64_t bytes)>& check) const;
  void AddFromIndex(std::vector<RepairUnit>& units) const;

  MappedFile file_;
  std::optional<ShardReader> index_;
  std::uint64_t sync_marker_ = 0;
  bool index_is_whole_ = false;
};

}  // namespace shardpack
