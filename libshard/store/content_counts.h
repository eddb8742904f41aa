// What a manifest tells of its records, gathered from the indexes of the shards alone.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include "shardpack/manifest.h"
#include "shardpack/shard_reader.h"

namespace shardpack {

// Add shards in the order of their records. No payload is read.
class ContentCounts {
 public:
  // Throws Error with kCorruption where the index is damaged.
  void Add(const ShardReader& shard);

  // Fills in encodings, codecs, widths, heights and, with the classes that `manifest` has, dataset_digest. No Add()
  // after it.
  void Finish(Manifest& manifest);

 private:
  // Counts of sizes, of which a run of records has one more often than not.
  class Sizes {
   public:
    void Add(std::uint32_t value) {
      if (value != last_value_ || last_ == nullptr) {
        last_value_ = value;
        last_ = &counts_[value];
      }
      ++*last_;
    }
    Histogram Sorted() const { return {counts_.begin(), counts_.end()}; }

   private:
    std::unordered_map<std::uint32_t, std::uint64_t> counts_;  // whose values stay where they are
    std::uint32_t last_value_ = 0;
    std::uint64_t* last_ = nullptr;
  };

  std::array<std::uint64_t, 256> encodings_{};
  std::array<CodecCount, 256> codecs_{};
  Sizes widths_, heights_;
  DatasetDigester digester_;
};

}  // namespace shardpack
