// Makes records out of what is left of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "libshard/pack/repair_scan.h"
#include "libshard/store/compression.h"
#include "shardpack/shard_writer.h"

namespace shardpack {

// What all threads share.
struct RebuildContext {
  const DamagedShard& shard;
  const DecompressionDictionary* dictionary = nullptr;  // null where there is none
  bool side_data = true;  // whether JPEGs that were rewritten without loss get the positions of their rows again
};

// A unit as it is written again, or why it is not. Views point into the shard, the unit or this object.
struct RebuiltUnit {
  std::string loss;  // why nothing of it came back; empty where it did
  std::vector<RecordToWrite> records;
  std::vector<bool> probed;  // by record: false where its picture could not be looked at, so that its size is 0 x 0

  std::vector<std::byte> raw;  // decompressed
  std::vector<std::vector<std::byte>> side_data;
};

// One a thread.
class RecordRebuilder {
 public:
  explicit RecordRebuilder(const RebuildContext& context);
  ~RecordRebuilder();

  // Replaces `out`. What is wrong with a unit is its `loss`.
  void Rebuild(const RepairUnit& unit, RebuiltUnit& out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Decompresses the payload of a record that is in no block; false where it is damaged or the dictionary another.
bool InflateUnit(const RepairUnit& unit, const DecompressionDictionary* dictionary, std::vector<std::byte>& raw);

}  // namespace shardpack
