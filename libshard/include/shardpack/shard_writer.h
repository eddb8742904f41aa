// Writes one record shard, front to back (docs/formats/record_shard.md).
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardpack/record.h"

namespace shardpack {

struct ShardWriterOptions {
  // Precedes every record so that `repair` finds them; drawn from the plan, so that equal requests give equal bytes.
  std::uint64_t sync_marker = 0;
  // Names of the classes by label, so that a shard is readable alone. Empty where labels are no classes.
  std::vector<std::string> class_names;
  // zstd dictionary for records of Codec::kZstdDictionary; empty for none.
  std::vector<std::byte> dictionary;
};

// A record as it is handed to the writer: already compressed and hashed, so that this can be done in parallel.
// `info.offset` is filled in by the writer. `info.stored_bytes` is payload.size().
struct RecordToWrite {
  RecordInfo info;
  std::string_view key;
  Bytes payload;
  Bytes metadata = {};   // UTF-8 JSON object, or empty
  Bytes side_data = {};  // private to the encoding (restart rows); empty for none
};

// What a finished shard is.
struct ShardSummary {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  Digest128 file_digest;   // XXH3-128 of all bytes of the file
  Digest128 index_digest;  // XXH3-128 from the block table to the end of the file: tells shards apart at a glance
};

// Not thread-safe. The file is complete only after Finish(); the destructor of an unfinished writer closes and removes
// the file. Throws Error with kIo when the system refuses, kInvalidArgument for a key over 65,535 bytes, a payload of 4
// GiB or more, 2^32 records, a codec whose dictionary is missing; in Finish() for a key that comes twice.
class ShardWriter {
 public:
  // Creates `path` (truncating what is there).
  ShardWriter(const std::filesystem::path& path, ShardWriterOptions options);
  ShardWriter(ShardWriter&&) noexcept;
  ShardWriter& operator=(ShardWriter&&) noexcept;
  ~ShardWriter();

  void Append(const RecordToWrite& record);
  // Appends the next records, which share `frame` (EncodeBlock() in libshard/store/record_block.h, RecordCompressor).
  // Of their payloads nothing is needed but info.raw_bytes and info.encoded_xxh3; codec and the frame's size and hash
  // are filled in. Precondition: there is one record at least. Throws kInvalidArgument for a frame that is not that of
  // the records.
  void AppendBlock(std::span<const RecordToWrite> records, Bytes frame);
  std::uint64_t num_records() const noexcept;
  std::uint64_t bytes_written() const noexcept;

  // Writes index and footer, syncs the file to the disk and closes it. No Append() after it.
  ShardSummary Finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardpack
