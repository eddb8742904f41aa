// Reads, checks, hashes and compresses inputs: the parallel half of packing.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "libshard/pack/image_work.h"
#include "libshard/pack/journal.h"
#include "libshard/pack/plan_file.h"
#include "shardpack/error.h"
#include "shardpack/record.h"

namespace shardpack {

// A run of inputs of one shard.
struct BatchTask {
  std::shared_ptr<const PlannedShard> shard;
  InputRange range;
  bool in_turn = false;     // one of its inputs is of a stream: read before the batches that follow
  bool ends_shard = false;  // the last of its shard
  std::uint64_t cost = 0;   // bytes of memory that it is expected to take
};

// The inputs of a batch, ready to be written. Used again and again: its buffers keep their capacity.
struct PackedBatch {
  // Bytes in one of the buffers.
  struct Place {
    bool made = false;  // in `made`, else in `raw`
    std::size_t position = 0, size = 0;
  };
  struct Record {
    RecordInfo info;          // of records of a block, payload sizes and hash are filled in by the writer
    std::uint64_t input = 0;  // index into PlannedShard::inputs
    Place payload, side_data;
  };
  // Records that share a frame.
  struct Block {
    std::size_t first = 0, count = 0;
    std::size_t position = 0, size = 0;  // in `frames`
  };
  std::vector<Record> records;
  std::vector<Block> blocks;
  std::vector<BadInput> bad;
  std::optional<ChannelSums> sums;
  std::vector<std::pair<std::uint64_t, Error>> unread;  // inputs that Read() could not read, and why
  std::vector<std::byte> raw, made, frames;

  Bytes At(const Place& place) const { return Bytes(place.made ? made : raw).subspan(place.position, place.size); }
  RecordToWrite ToWrite(const Record& record, const PlannedShard& shard) const;
  std::uint64_t capacity() const { return raw.capacity() + made.capacity() + frames.capacity(); }
};

// What all threads share while packing.
struct BatchContext {
  const std::vector<std::unique_ptr<Source>>& sources;
  const CodecPlan& codecs;
  ImageWorkOptions work;  // but for `statistics`:
  Statistics statistics = Statistics::kNone;
  std::uint64_t sample_share = 1;  // of kSample: one picture in so many
  std::mutex large_picture;
  const std::atomic<bool>* stop = nullptr;
};

// One a thread.
class BatchPacker {
 public:
  explicit BatchPacker(BatchContext& context);
  ~BatchPacker();

  // Of tasks that are read in turn, which Read() must be called for before Pack().
  void Read(const BatchTask& task, PackedBatch& out);
  // Replaces `out`, but for what Read() left in it. Bad inputs are entries of out.bad. Throws Interrupted; Error where
  // the system refuses to go on, or a stream fails.
  void Pack(const BatchTask& task, PackedBatch& out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardpack
