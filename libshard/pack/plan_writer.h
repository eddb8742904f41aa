// Writes a plan as its inputs come, in memory that does not grow with them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "libshard/pack/plan_format.h"
#include "libshard/store/checksum.h"
#include "libshard/store/unique_fd.h"

namespace shardpack {

// Cuts before a shard would pass `shard_bytes` of input, or after `shard_records` where given. A larger input has a
// shard to itself.
class ShardCutter {
 public:
  ShardCutter(std::uint64_t shard_bytes, std::optional<std::uint64_t> shard_records)
      : shard_bytes_(shard_bytes), shard_records_(shard_records) {}

  // Takes the next input; true where a new shard begins with it (not for the first).
  bool BeginsWith(std::uint64_t input_bytes);

 private:
  const std::uint64_t shard_bytes_;
  const std::optional<std::uint64_t> shard_records_;
  std::uint64_t inputs_ = 0, bytes_ = 0;
};

// The file is made anew (what a link of its name leads to is never written), and removed again where Finish() was not
// reached. All members throw Error with kIo or kNotFound.
class PlanWriter {
 public:
  PlanWriter(const std::filesystem::path& file, std::uint64_t shard_bytes, std::optional<std::uint64_t> shard_records);
  ~PlanWriter();
  PlanWriter(const PlanWriter&) = delete;
  PlanWriter& operator=(const PlanWriter&) = delete;

  void Add(const PlannedInput& input);
  std::uint64_t num_shards() const { return num_shards_ + (row_.inputs > 0 ? 1 : 0); }
  // Writes the rest and syncs the file.
  void Finish(const PlanHead& head);

 private:
  void EndSection();
  void Flush();
  void WriteAt(std::uint64_t offset, std::string_view bytes);

  const std::string path_;
  ShardCutter cutter_;
  UniqueFd fd_;
  bool finished_ = false;
  std::uint64_t offset_ = kPlanHeaderBytes;  // of what is in buffer_
  std::string buffer_, key_before_, table_;
  std::uint64_t num_shards_ = 0;
  PlanRow row_;  // of the open section
  Xxh3Stream128 section_;
};

}  // namespace shardpack
