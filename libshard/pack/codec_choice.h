// How records are compressed: chosen once, while planning, from a sample; then the same for every record on every
// machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "shardpack/manifest.h"
#include "shardpack/pack.h"
#include "shardpack/record.h"

namespace shardpack {

// The decision, as it stands in the plan.
struct CodecPlan {
  struct Rule {
    Encoding encoding = Encoding::kUnknown;
    Codec codec = Codec::kStored;  // what is tried; a record that does not gain is stored all the same
    friend bool operator==(const Rule&, const Rule&) = default;
  };
  std::vector<Rule> rules;  // encodings without a rule follow `fallback`
  Codec fallback = Codec::kStored;
  int level = 3;  // zstd's
  std::uint64_t tiny_bytes =
      0;  // kZstdDictionary and kZstdBlock are for records of at most this raw size; larger ones: kZstd
  std::vector<std::byte> dictionary;  // empty for none
  std::vector<CodecReceipt> receipts;
  friend bool operator==(const CodecPlan&, const CodecPlan&) = default;

  Codec CodecFor(Encoding encoding, std::uint64_t raw_bytes) const;
};

// A record of the sample, as it would be stored: after the work of --images.
struct SampleRecord {
  Encoding encoding = Encoding::kUnknown;
  std::vector<std::byte> bytes;
};

// Pure: the same sample and options give the same plan, dictionary included. `total_records` is of the whole request (a
// dictionary must pay for itself in every shard). Sizes and a fixed table of decode costs decide, never a clock.
// Incompressible encodings (JPEG, WebP) are found out on the sample alone.
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

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardpack
