// What an epoch cost and what went wrong in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardpack::loader {

// A record that could not be used, and what stood in for it.
struct BadRecord {
  std::uint64_t step = 0;
  std::uint64_t index = 0;      // planned
  std::uint64_t delivered = 0;  // index of the substitute; equals `index` where it was masked
  std::string shard;
  std::uint64_t record = 0;  // within the shard
  std::uint64_t offset = 0;  // of its stored bytes
  std::string key;
  std::string reason;

  std::string ToJson() const;  // one line of the ledger
};

struct Report {
  std::uint64_t images = 0;  // delivered, padding left out
  std::uint64_t steps = 0;
  double seconds = 0;                // from the first wait to the last batch
  double consumer_wait_seconds = 0;  // time the consumer stood in Next()
  double first_batch_seconds = 0;
  double read_seconds = 0, decode_seconds = 0, transform_seconds = 0;  // summed over threads
  std::uint64_t bytes_read = 0;                                        // stored bytes
  std::uint64_t substituted = 0, masked = 0;
  std::vector<BadRecord> bad_records;

  double images_per_second() const { return seconds > 0 ? images / seconds : 0; }
  double consumer_wait_percent() const { return seconds > 0 ? 100 * consumer_wait_seconds / seconds : 0; }
};

}  // namespace shardpack::loader
