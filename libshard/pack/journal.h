// What is known of a finished shard: one small file a shard in OUT/.shardpack, so that any number of processes on any
// number of machines can write and read the journal without a lock.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "shardpack/error.h"
#include "shardpack/manifest.h"
#include "shardpack/record.h"

namespace shardpack {

// An input that was left out.
struct BadInput {
  std::string key;
  std::string source;  // its path as Source::Describe() gives it
  std::string reason;
  std::optional<std::uint64_t> offset;
  ErrorCode code = ErrorCode::kBadInput;  // kIo where the system refused to open or read it
  friend bool operator==(const BadInput&, const BadInput&) = default;
};

// What a dataset's manifest sums up over its records.
struct RecordCounts {
  std::uint64_t records = 0, bytes_in = 0;
  Histogram widths, heights;
  std::array<std::uint64_t, 256> encodings{};
  std::array<CodecCount, 256> codecs{};
  std::optional<ChannelSums> statistics;

  // Of records that share a block, its stored bytes are those of the first alone.
  void Add(const RecordInfo& info, std::uint64_t input_bytes);
  void Add(const RecordCounts& other);
  void PutInto(Manifest& manifest) const;  // records, bytes_in, histograms, encodings, codecs, statistics
  static RecordCounts Of(const Manifest& manifest);
};

struct FinishedShard {
  std::uint64_t number = 0;
  std::optional<ShardEntry> entry;  // none where all of its inputs were bad: there is no file then
  RecordCounts counts;
  std::vector<BadInput> bad;  // in order of inputs
};

// "finished-00012"
std::string FinishedName(std::uint64_t number);

// One file, replaced in one step and synced; not its folder, for an entry that a power cut takes away costs that
// shard's work and nothing else. The text carries the plan's request digest and a checksum. `token`:
// WorkFolder::token(), for the name until it is whole.
void WriteFinished(const std::filesystem::path& work, const std::string& token, const Digest128& request,
                   const FinishedShard& shard);
// nullopt where there is none, where it is damaged or of another request: the shard is done again then.
std::optional<FinishedShard> LoadFinished(const std::filesystem::path& work, const Digest128& request,
                                          std::uint64_t number);

}  // namespace shardpack
