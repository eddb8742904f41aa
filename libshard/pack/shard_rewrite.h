// Writes a shard anew without some of its records.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "shardpack/shard_reader.h"
#include "shardpack/shard_writer.h"

namespace shardpack {

struct ShardRewrite {
  std::filesystem::path output;
  int zstd_level = 3;  // of blocks that lose a record
  const std::atomic<bool>* stop = nullptr;
  std::function<void(std::uint64_t records, std::uint64_t bytes)> progress;  // as records are passed; may be empty
};

// Records keep their order and their stored bytes, class names, dictionary and sync marker stay; only a block that
// loses a record is compressed again. `dropped`: record numbers, ascending. Precondition: a record remains. Throws
// Error with kCorruption where a record that stays is damaged, kIo; Interrupted.
ShardSummary WriteWithout(const ShardReader& from, const std::vector<std::uint64_t>& dropped,
                          const ShardRewrite& rewrite);

}  // namespace shardpack
