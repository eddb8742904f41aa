// How records are compressed: chosen once, while planning, from a sample; then the same for every record on every
// machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "shardpack/manifest.h"
#include "shardpack/pack.h"
#include "shardpack/record.h"
#include "shardpack/shard_writer.h"

namespace shardpack {

// The decision, as it stands in the plan.
struct CodecPlan {
  struct Rule {
    Encoding encoding = Encoding::kUnknown;
    Codec codec = Codec::kStored;  // what is tried; a record that does not gain is stored all the same
    friend bool operator==(const Rule&, const Rule&) = default;
  };
  // The first that fits a record's encoding and size; a record that none fits follows `fallback`.
  std::vector<Rule> rules;
  Codec fallback = Codec::kStored;
  int level = 3;  // zstd's; 9 for an archive, unless it was given
  // Rules of kZstdDictionary and kZstdBlock fit records of at most this raw size; a fallback of these is kZstd for
  // larger ones.
  std::uint64_t tiny_bytes = 0;
  std::vector<std::byte> dictionary;  // empty for none
  std::vector<CodecReceipt> receipts;
  friend bool operator==(const CodecPlan&, const CodecPlan&) = default;

  Codec CodecFor(Encoding encoding, std::uint64_t raw_bytes) const;
};

// A block of several records is closed before its content passes this.
inline constexpr std::uint64_t kBlockContentBytes = 64 << 10;

// A record of the sample, as it would be stored: after the work of --images.
struct SampleRecord {
  Encoding encoding = Encoding::kUnknown;
  std::vector<std::byte> bytes;
};

// Pure: the same sample and options give the same plan, dictionary included. `total_records` is of the whole request (a
// dictionary must pay for itself in every shard). Sizes and a fixed table of decode costs decide, never a clock.
//
// kAuto: for each encoding, and for its tiny records on their own, the codec for which bytes stored x 5 ns + time to
// inflate is least among those that save 5 % of the sample. So encodings that are compressed already are found out on
// the sample alone; those the sample does not have are stored, but for BMP, TIFF, PNM and pixels, which are tried.
// kZstd: zstd is tried on every record, with a dictionary on tiny ones where it pays. kArchive: tiny records in blocks,
// zstd tried on all others. Throws Error with kInvalidArgument for a dictionary below 256 bytes.
CodecPlan ChooseCodecs(const std::vector<SampleRecord>& sample, std::uint64_t total_records, std::uint64_t num_shards,
                       Compression compression, std::optional<int> zstd_level,
                       std::optional<std::uint64_t> dictionary_bytes);

// Compresses records by the plan. One a thread.
class RecordCompressor {
 public:
  explicit RecordCompressor(const CodecPlan& plan);  // keeps a reference
  ~RecordCompressor();

  // Appends the stored form of `raw` to `out` and returns its codec; kStored appends nothing, for the input itself is
  // stored. kZstdBlock is not made here: it returns kZstdBlock for a record that belongs into a block, and appends
  // nothing.
  Codec Compress(Encoding encoding, Bytes raw, std::vector<std::byte>& out);

  // The same with zstd for a record that no block has room for: ShareOfBlock() is above kBlockContentBytes, which long
  // metadata can do.
  Codec CompressAlone(Bytes raw, std::vector<std::byte>& out);

  // Appends the frame of records of kZstdBlock that follow one another in a shard and returns its size; their payloads
  // are the encoded images. ShardWriter::AppendBlock() takes it. A block ends where the next record is of another
  // codec, or the sum of ShareOfBlock() (libshard/store/record_block.h) would pass kBlockContentBytes.
  std::size_t CompressBlock(std::span<const RecordToWrite> records, std::vector<std::byte>& out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardpack
