// Writes records into one shard after another, in order: the serial half of packing.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <optional>

#include "libshard/pack/batch_packer.h"
#include "libshard/pack/journal.h"
#include "libshard/pack/work_folder.h"
#include "shardpack/shard_writer.h"

namespace shardpack {

// Shards are finished (index written, synced to the disk, named, journalled) by a thread of their own while the next
// is filled. Not thread-safe. The destructor waits for those.
class ShardSeries {
 public:
  // `memory_bytes`: what the indexes of shards being finished may take beside the one being filled.
  ShardSeries(const WorkFolder& work, const PlanHead& head, std::uint64_t memory_bytes)
      : work_(work), head_(head), memory_bytes_(memory_bytes) {}

  // Appends the batch's records to its shard. Batches of a shard come one after the other.
  void Append(const BatchTask& task, const PackedBatch& batch);
  // Waits until all shards are finished.
  void Finish();

 private:
  struct OpenShard {
    FinishedShard state;
    std::optional<ShardWriter> writer;  // none until there is a record
  };

  void Open(std::uint64_t number);
  void WriteRecords(const BatchTask& task, const PackedBatch& batch);
  void Close();
  void TakeOne();

  const WorkFolder& work_;
  const PlanHead& head_;
  const std::uint64_t memory_bytes_;
  std::optional<OpenShard> open_;
  struct Finishing {
    std::future<void> done;
    std::uint64_t index_bytes = 0;
  };
  std::deque<Finishing> finishing_;
  std::uint64_t index_bytes_ = 0;  // of all in finishing_
};

}  // namespace shardpack
