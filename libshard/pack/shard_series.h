// Writes records into one shard after another, in order: the serial half of packing.
#pragma once

#include <cstdint>
#include <deque>
#include <future>
#include <optional>
#include <vector>

#include "libshard/pack/batch_packer.h"
#include "libshard/pack/output_folder.h"
#include "shardpack/shard_writer.h"

namespace shardpack {

// Shards are finished (index written, synced to the disk) by a thread of their own while the next is filled. Not
// thread-safe.
class ShardSeries {
 public:
  ShardSeries(WorkFolder& work, const Inputs& inputs, Digest128 request);

  // Appends the batch's records to shard number `shard`, counting them in `manifest`. Numbers never go down.
  void Append(std::uint64_t shard, const PackedBatch& batch);

  // Waits until all shards are on the disk, moves them into the output folder and completes the manifest's list of
  // shards and digests.
  Manifest Finish();

 private:
  struct Finished {
    std::uint64_t number;
    std::future<ShardSummary> summary;
  };

  void OpenShard(std::uint64_t shard);
  void CloseShard();
  void TakeSummary();
  void Count(const PackedBatch::Record& record, std::string_view key);

  WorkFolder& work_;
  const Inputs& inputs_;
  Digest128 request_;
  Manifest manifest_;
  DatasetDigester digester_;
  std::optional<ShardWriter> writer_;
  std::uint64_t shard_ = 0;
  std::deque<Finished> finishing_;
  std::vector<std::uint64_t> numbers_;  // of manifest_.shards
  CodecCount codecs_[256];
  std::uint64_t encodings_[256] = {};
};

}  // namespace shardpack
